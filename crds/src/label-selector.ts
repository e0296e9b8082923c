/** Label selectors: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors */

import { z } from "zod";
import { withRules } from "./rule.ts";

/** Bound the cost of CEL over them; nobody writes so many. */
const MAX_EXPRESSIONS = 16;
const MAX_VALUES = 100;
const MAX_LABELS = 64;

const MAX_VALUE_LENGTH = 63;
/** A DNS subdomain, a slash and a name. */
const MAX_KEY_LENGTH = 253 + 1 + 63;

const VALUE = "([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?";
const KEY = "([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";

const LabelKey = withRules(z.string().max(MAX_KEY_LENGTH), {
  cel: `self.matches('^${KEY}$')`,
  holds: (key) => new RegExp(`^${KEY}$`).test(key),
  message:
    '"{self}" is not a label key: write a name like team, or a domain and a name like example.com/team',
});

const LabelValue = withRules(z.string().max(MAX_VALUE_LENGTH), {
  cel: `self.matches('^${VALUE}$')`,
  holds: (value) => new RegExp(`^${VALUE}$`).test(value),
  message:
    '"{self}" is not a label value: letters, digits, "-", "_" and "." only, with a letter or digit at both ends',
});

const LabelSelectorRequirement = withRules(
  z.object({
    key: LabelKey.describe("Key of the label."),
    operator: z
      .enum(["In", "NotIn", "Exists", "DoesNotExist"])
      .describe(
        "How the label's value relates to `values`. NotIn also selects objects that do not have the label.",
      ),
    values: z
      .array(LabelValue)
      .max(MAX_VALUES)
      .describe("At least one value for In and NotIn, none for the other operators.")
      .exactOptional(),
  }),
  {
    cel: "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
    holds: ({ operator, values = [] }) => (operator === "In" || operator === "NotIn") === values.length > 0,
    message: "the operators In and NotIn need values, Exists and DoesNotExist must have none",
  },
);

export const Labels = withRules(z.record(z.string(), LabelValue).meta({ maxProperties: MAX_LABELS }), {
  cel: `self.all(key, size(key) <= ${MAX_KEY_LENGTH} && key.matches('^${KEY}$'))`,
  holds: (labels) => Object.keys(labels).every((key) => new RegExp(`^${KEY}$`).test(key)),
  message:
    "has a key that is not a label key: write a name like team, or a domain and a name like example.com/team",
});

/** Annotations of an object: their keys are as those of labels, but for the case of the domain. */
export const Annotations = withRules(z.record(z.string(), z.string()).meta({ maxProperties: MAX_LABELS }), {
  cel: `self.all(key, size(key) <= ${MAX_KEY_LENGTH} && key.matches('(?i)^${KEY}$'))`,
  holds: (annotations) => Object.keys(annotations).every((key) => new RegExp(`^${KEY}$`, "i").test(key)),
  message:
    "has a key that is not an annotation key: write a name like note, or a domain and a name like example.com/note",
});

/** What selects objects by their labels; all of it must hold, so an empty one selects every object. */
export const LabelSelector = z.object({
  matchLabels: Labels.describe("Labels that the object must have with these values.").exactOptional(),
  matchExpressions: z
    .array(LabelSelectorRequirement)
    .max(MAX_EXPRESSIONS)
    .describe("Requirements that the labels of the object must meet.")
    .exactOptional(),
});
export type LabelSelector = z.infer<typeof LabelSelector>;

export function selects(
  { matchLabels = {}, matchExpressions = [] }: LabelSelector,
  labels: Readonly<Record<string, string>>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((requirement) => meets(labels[requirement.key], requirement))
  );
}

function meets(
  value: string | undefined,
  { operator, values = [] }: z.infer<typeof LabelSelectorRequirement>,
): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
  }
}
