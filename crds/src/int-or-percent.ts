/** Counts of pods, absolute or relative, as Deployments and PodDisruptionBudgets take them. */

import { z } from "zod";
import { withRules } from "./rule.ts";

const INT_OR_PERCENT = z.union([z.int32(), z.string()]);

/** What an integer of the union is bounded by: its schema in the CRD cannot say its width. */
const COUNT = `(self >= 0 && self <= ${2 ** 31 - 1})`;

/** A count of pods, or a percentage of them rounded up or down by its reader. */
export const IntOrPercent = withRules(INT_OR_PERCENT, {
  cel: `type(self) == int ? ${COUNT} : self.matches('^[0-9]+%$')`,
  holds: (value) => (typeof value === "number" ? value >= 0 : /^[0-9]+%$/.test(value)),
  message: 'must be a count of at least 0, or a percentage such as "25%"',
});
export type IntOrPercent = z.infer<typeof IntOrPercent>;

/** The same, but a percentage is at most 100%. */
export const IntOrPortion = withRules(INT_OR_PERCENT, {
  cel: `type(self) == int ? ${COUNT} : self.matches('^(100|[0-9]{1,2})%$')`,
  holds: (value) => (typeof value === "number" ? value >= 0 : /^(100|[0-9]{1,2})%$/.test(value)),
  message: 'must be a count of at least 0, or a percentage from "0%" to "100%"',
});
