/** A check that the API server (CEL) and the programs (zod) make alike, written once. */

import type { z } from "zod";

/**
 * One check of a value.
 *
 * `{self}` in the message stands for the value. Use it on strings only: CEL's cost limit makes a CRD
 * invalid whose messages format anything longer.
 */
export interface Rule<T> {
  /** CEL expression over `self`: https://kubernetes.io/docs/reference/using-api/cel/ */
  readonly cel: string;
  /** The same check for values that do not come from the API server. */
  readonly holds: (value: T) => boolean;
  readonly message: string;
}

/** Adds rules to a schema: as zod refinements, and as CEL rules for the CRD made from it. */
export function withRules<S extends z.ZodType>(schema: S, ...rules: readonly Rule<z.output<S>>[]): S {
  const refined = rules.reduce<S>(
    (refining, rule) =>
      refining.refine((value) => rule.holds(value as z.output<S>), {
        error: (issue) => rule.message.replaceAll("{self}", String(issue.input)),
      }) as S,
    schema,
  );
  return withCel(refined, ...rules.map(celRule));
}

/** One entry of `x-kubernetes-validations`. */
export interface CelRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
}

/** Adds checks that only the API server can make, such as a comparison with the stored object. */
export function withCel<S extends z.ZodType>(schema: S, ...rules: readonly CelRule[]): S {
  const meta = schema.meta();
  const present = (meta?.["x-kubernetes-validations"] ?? []) as readonly CelRule[];
  return schema.meta({ ...meta, "x-kubernetes-validations": [...present, ...rules] });
}

function celRule({ cel, message }: Pick<Rule<never>, "cel" | "message">): CelRule {
  if (!message.includes("{self}")) return { rule: cel, message };
  const pieces = message.split("{self}").map((piece) => JSON.stringify(piece));
  return {
    rule: cel,
    // The API server takes no message of two lines, so this one is for values that have them.
    message: message.replaceAll('"{self}"', "the text"),
    messageExpression: pieces.join(" + self + "),
  };
}
