/** A set of fields as FieldsV1 writes it: "f:<field>", "k:<keys of a list's item>", "v:<value of a set>" and ".". */
export interface FieldSet {
  readonly [pathElement: string]: FieldSet;
}

/** Who owns which fields of an object: one entry of metadata.managedFields. */
export interface ManagedFieldsEntry {
  readonly manager?: string | undefined;
  readonly operation?: string | undefined;
  readonly subresource?: string | undefined;
  readonly apiVersion?: string | undefined;
  readonly fieldsV1?: FieldSet | undefined;
}

const LEAF: FieldSet = Object.freeze({});

/** The same fields in half the memory: most objects of a set are leaves, and here one stands for all of them. */
export function sharingLeaves(fields: FieldSet): FieldSet {
  const entries = Object.entries(fields);
  if (entries.length === 0) return LEAF;
  return Object.fromEntries(entries.map(([element, below]) => [element, sharingLeaves(below)]));
}

/** What SSA leaves out of its account: it belongs to no manager. */
const UNMANAGED_METADATA = new Set([
  "name",
  "namespace",
  "uid",
  "resourceVersion",
  "generation",
  "creationTimestamp",
  "deletionTimestamp",
  "selfLink",
  "managedFields",
]);

/** The fields of the object itself, without a subresource, that a manager has applied and that are still its own. */
export function appliedFields(
  entries: readonly ManagedFieldsEntry[] | undefined,
  fieldManager: string,
): FieldSet | undefined {
  return entries?.find((entry) => isApplyOf(entry, fieldManager))?.fieldsV1;
}

/**
 * The entries as if a manager had applied all that others have set in the object itself, but for its metadata: what of
 * it the manager does not want, its next apply removes.
 *
 * @returns undefined where others have set nothing, or the manager has applied nothing
 */
export function takenOver(
  entries: readonly ManagedFieldsEntry[] | undefined = [],
  fieldManager: string,
): readonly ManagedFieldsEntry[] | undefined {
  const applied = entries.find((entry) => isApplyOf(entry, fieldManager));
  if (applied === undefined) return undefined;
  const taken: FieldSet[] = [];
  const rest = entries.flatMap((entry) => {
    if (entry === applied) return [];
    const { "f:metadata": metadata, ...fields } = entry.fieldsV1 ?? {};
    if (entry.subresource || Object.keys(fields).length === 0) return [entry];
    taken.push(fields);
    return metadata === undefined ? [] : [{ ...entry, fieldsV1: { "f:metadata": metadata } }];
  });
  if (taken.length === 0) return undefined;
  return [{ ...applied, fieldsV1: taken.reduce(union, applied.fieldsV1 ?? {}) }, ...rest];
}

function isApplyOf(entry: ManagedFieldsEntry, fieldManager: string): boolean {
  return entry.manager === fieldManager && entry.operation === "Apply" && !entry.subresource;
}

function union(a: FieldSet, b: FieldSet): FieldSet {
  const both = Object.entries(b).map(([element, fields]) => [element, union(a[element] ?? {}, fields)]);
  return { ...a, ...Object.fromEntries(both) };
}

/**
 * Whether a manager still owns everything that it has once applied.
 *
 * Who changes or removes a field takes it from its owners: what is still owned is as it was applied. Where it cannot
 * tell, it says no.
 *
 * @param applied what was applied, as it was sent
 * @see https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management
 */
export function ownsAll(owned: FieldSet, applied: object): boolean {
  const managed = Object.entries(applied).filter(([name]) => name !== "apiVersion" && name !== "kind");
  return managed.every(([name, value]) => {
    if (name !== "metadata") return ownsField(owned, name, value);
    const metadata = Object.entries(value).filter(([field]) => !UNMANAGED_METADATA.has(field));
    return metadata.length === 0 || ownsField(owned, name, Object.fromEntries(metadata));
  });
}

function ownsField(owned: FieldSet, name: string, value: unknown): boolean {
  if (value === undefined) return true;
  const fields = owned[`f:${name}`];
  return fields !== undefined && ownsValue(fields, value);
}

function ownsValue(owned: FieldSet, value: unknown): boolean {
  // A leaf: a plain value, or a list or map that has one owner as a whole.
  if (Object.keys(owned).length === 0) return true;
  if (Array.isArray(value)) return value.every((item) => ownsItem(owned, item));
  if (value === null || typeof value !== "object") return true;
  return Object.entries(value).every(([name, field]) => ownsField(owned, name, field));
}

function ownsItem(owned: FieldSet, item: unknown): boolean {
  if (item === null || typeof item !== "object") return owned[`v:${JSON.stringify(item)}`] !== undefined;
  const fields = itemFields(owned, item as Readonly<Record<string, unknown>>);
  return fields !== undefined && ownsValue(fields, item);
}

/**
 * The fields of the list item that has the same keys. A key that was not applied was filled in by the apiserver (a
 * port's protocol): with two items to choose from it remains unknown which one is meant.
 */
function itemFields(owned: FieldSet, item: Readonly<Record<string, unknown>>): FieldSet | undefined {
  const candidates = Object.entries(owned).flatMap(([element, fields]) => {
    if (!element.startsWith("k:")) return [];
    const keys = Object.entries(JSON.parse(element.slice(2)) as Record<string, unknown>);
    const matches = keys.every(([name, value]) => item[name] === undefined || item[name] === value);
    return matches ? [{ fields, isExact: keys.every(([name]) => item[name] !== undefined) }] : [];
  });
  const exact = candidates.find((candidate) => candidate.isExact);
  return exact?.fields ?? (candidates.length === 1 ? candidates[0]?.fields : undefined);
}
