/** Egresses as they are stored: an earlier or a later release may have accepted what this one does not understand. */

import { z } from "zod";
import { EgressSpec, EgressStatus } from "./egress.ts";
import { ObjectMeta } from "./object-meta.ts";

/** A pod template may be long, and nobody needs one of an Egress that is left as it is. */
const { template: _, ...fields } = EgressSpec.shape;

const SpecInParts = z.object(
  Object.fromEntries(
    Object.entries(fields).map(([name, field]: [string, z.ZodType]) => [
      name,
      field.optional().catch(undefined),
    ]),
  ),
) as unknown as z.ZodType<Partial<Omit<EgressSpec, "template">>>;

const InParts = z.object({
  metadata: ObjectMeta,
  spec: SpecInParts.catch({}),
  status: EgressStatus.optional().catch(undefined),
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
    // The operator writes a status anew that is not understood: it is no reason to leave the Egress as it is.
    const { status: _, ...rest } = raw as { readonly status?: unknown };
    const judged = schema.safeParse(status === undefined ? rest : raw);
    if (judged.success) return judged.data;
    const invalid = judged.error.issues.map(inWords).join("; ");
    return { metadata, spec, ...(status && { status }), invalid };
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
