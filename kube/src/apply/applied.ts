import { createHash } from "node:crypto";
import { appliedFields, ownsAll } from "../objects/managed-fields.ts";
import type { KubeObject } from "../objects/resource.ts";

export interface AppliedOptions {
  readonly fieldManager: string;
  /** The annotation that carries the digest of what was applied. */
  readonly annotation: string;
}

type Applicable = Pick<KubeObject, "metadata">;

/**
 * The object to apply, with a digest of itself in an annotation: {@link isApplied} knows it again by that.
 *
 * To compare it with the live object field by field would not do: the apiserver fills in defaults and writes
 * quantities in its own way, and inside lists that have one owner a missing field may be a default or a removal.
 */
export function withDigest<T extends Applicable>(object: T, annotation: string): T {
  const annotations = { ...object.metadata.annotations, [annotation]: digest(object) };
  return { ...object, metadata: { ...object.metadata, annotations } };
}

/**
 * Whether to apply an object would change nothing: the digest says that nothing else is wanted since it was last
 * applied, and the managed fields that nobody has touched what we own since then.
 *
 * It errs on one side only: where it says yes, an apply would be idle. Leave empty lists out of what is applied: some
 * of them the apiserver keeps no account of, and such an object is never known again.
 *
 * @param live the object as the apiserver sent it, with metadata.annotations and {@link appliedFields}
 *   of this manager in metadata.managedFields
 * @param wanted what {@link withDigest} returned
 */
export function isApplied(live: KubeObject, wanted: Applicable, options: AppliedOptions): boolean {
  const { fieldManager, annotation } = options;
  const wantedDigest = wanted.metadata.annotations?.[annotation];
  if (wantedDigest === undefined)
    throw new TypeError(`${wanted.metadata.name} carries no digest: use withDigest`);
  if (live.metadata.annotations?.[annotation] !== wantedDigest) return false;
  const owned = appliedFields(live.metadata.managedFields, fieldManager);
  return owned !== undefined && ownsAll(owned, wanted);
}

/** Tells objects apart, whatever the order of their keys. @returns 27 characters of base64url */
export function digest(object: object): string {
  return createHash("sha256")
    .update(JSON.stringify(canonical(object)))
    .digest("base64url")
    .slice(0, 27);
}

/** The same value with its keys in order: to write it in another order is no change. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, field]) => [key, canonical(field)]));
}
