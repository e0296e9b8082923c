/** Counts of pods, absolute or relative, as Deployments and PodDisruptionBudgets take them. */

import { z } from "zod";
import { withRules } from "./rule.ts";

/** What an integer of the union is bounded by: its schema in the CRD cannot say its width. */
const COUNT = `(self >= 0 && self <= ${2 ** 31 - 1})`;

/** A count of pods, or a percentage of them rounded up or down by its reader. */
export const IntOrPercent = countOr("^[0-9]+%$", 'a percentage such as "25%"');
export type IntOrPercent = z.infer<typeof IntOrPercent>;

/** The same, but a percentage is at most 100%. */
export const IntOrPortion = countOr("^(100|[0-9]{1,2})%$", 'a percentage from "0%" to "100%"');

function countOr(pattern: string, inWords: string) {
  return withRules(z.union([z.int32(), z.string()]), {
    cel: `type(self) == int ? ${COUNT} : self.matches('${pattern}')`,
    holds: (value) => (typeof value === "number" ? value >= 0 : new RegExp(pattern).test(value)),
    message: `must be a count of at least 0, or ${inWords}`,
  });
}
