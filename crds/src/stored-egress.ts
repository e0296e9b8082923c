/** Egresses as they are stored: an earlier or a later release may have accepted what this one does not understand. */

import { z } from "zod";
import { EgressSpec } from "./egress.ts";
import { EgressStatus } from "./egress-status.ts";
import { ObjectMeta } from "./object-meta.ts";

/** A pod template may be long, and nobody needs one of an Egress that is left as it is. */
const { template: _, ...fields } = EgressSpec.shape;

/** A parser of objects that leaves out each field that is not understood. */
function inParts<T extends object>(shape: Readonly<Record<string, z.ZodType>>): z.ZodType<Partial<T>> {
  const parts = Object.entries(shape).map(([name, field]) => [name, field.optional().catch(undefined)]);
  return z
    .object(Object.fromEntries(parts))
    .transform((object) =>
      Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)),
    ) as unknown as z.ZodType<Partial<T>>;
}

const InParts = z.object({
  metadata: ObjectMeta,
  spec: inParts<Omit<EgressSpec, "template">>(fields).catch({}),
  status: inParts<EgressStatus>(EgressStatus.shape).optional().catch(undefined),
});

/**
 * An Egress that is there, and that this release does not understand. What it was understood as before holds on: nothing
 * that serves is torn down.
 */
export interface InvalidEgress {
  readonly metadata: ObjectMeta;
  /** Those fields that are understood by themselves. */
  readonly spec: Partial<Omit<EgressSpec, "template">>;
  readonly status?: EgressStatus | undefined;
  /** What is wrong, by field, for people. */
  readonly invalid: string;
}

/**
 * A parser that refuses no Egress for what its spec says.
 *
 * @param schema the part of an Egress that a program reads
 * @returns what that makes of the object, else an {@link InvalidEgress}
 * @throws ZodError for what is no object of the API at all
 */
export function orInvalid<S extends z.ZodType>(schema: S): (raw: unknown) => z.output<S> | InvalidEgress {
  return (raw) => {
    const whole = schema.safeParse(raw);
    if (whole.success) return whole.data;
    const { metadata, spec, status } = InParts.parse(raw);
    // The operator rewrites a status that is not understood, so such a status does not stop it.
    const { status: rawStatus, ...rest } = raw as { readonly status?: unknown };
    const understood = status && { status: withoutGuesses(status, rawStatus) };
    const judged = schema.safeParse({ ...rest, ...understood });
    if (judged.success) return judged.data;
    const invalid = judged.error.issues.map(inWords).join("; ");
    return { metadata, spec, ...understood, invalid };
  };
}

/**
 * What says something by its absence is not absent where it is not understood: then the field by which its absence would
 * be believed goes as well.
 */
function withoutGuesses(status: EgressStatus, raw: unknown): EgressStatus {
  const isLost = (field: keyof EgressStatus) =>
    status[field] === undefined && (raw as Record<string, unknown>)[field] !== undefined;
  const { observedGeneration, serviceIPs, ...rest } = status;
  return {
    ...rest,
    // Without a list every namespace would be allowed, without a UID every Service of the name.
    ...(observedGeneration !== undefined && !isLost("allowedNamespaces") && { observedGeneration }),
    ...(serviceIPs !== undefined && !isLost("serviceUID") && { serviceIPs }),
  };
}

/** Whether this release does not understand an Egress. */
export function isInvalid(egress: object): egress is InvalidEgress {
  return "invalid" in egress;
}

/** As the API server names fields: `spec.destinations[0]`. */
function inWords({ path, message }: z.core.$ZodIssue): string {
  const field = path
    .map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`))
    .join("")
    .slice(1);
  return `${field}: ${message}`;
}
