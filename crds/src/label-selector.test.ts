import { describe, expect, test } from "vitest";
import { type LabelSelector, selects } from "./label-selector.ts";

const LABELS = { team: "payments", "example.com/tier": "" };

describe("a selector selects labels", () => {
  test.each<[string, LabelSelector]>([
    ["when it is empty", {}],
    ["that it names", { matchLabels: { team: "payments", "example.com/tier": "" } }],
    [
      "of which the value is one of its own",
      { matchExpressions: [{ key: "team", operator: "In", values: ["a", "payments"] }] },
    ],
    [
      "of which the value is none of its own",
      { matchExpressions: [{ key: "team", operator: "NotIn", values: ["a"] }] },
    ],
    ["without the key of NotIn", { matchExpressions: [{ key: "stage", operator: "NotIn", values: ["a"] }] }],
    ["with the key of Exists", { matchExpressions: [{ key: "example.com/tier", operator: "Exists" }] }],
    ["without the key of DoesNotExist", { matchExpressions: [{ key: "stage", operator: "DoesNotExist" }] }],
  ])("%s", (_, selector) => {
    expect(selects(selector, LABELS)).toBe(true);
  });

  test.each<[string, LabelSelector]>([
    ["with another value", { matchLabels: { team: "orders" } }],
    ["without a label that it names", { matchLabels: { team: "payments", stage: "" } }],
    ["without the key of In", { matchExpressions: [{ key: "stage", operator: "In", values: ["a"] }] }],
    [
      "with a value of NotIn",
      { matchExpressions: [{ key: "team", operator: "NotIn", values: ["payments"] }] },
    ],
    ["without the key of Exists", { matchExpressions: [{ key: "stage", operator: "Exists" }] }],
    ["with the key of DoesNotExist", { matchExpressions: [{ key: "team", operator: "DoesNotExist" }] }],
    [
      "that meet one requirement of two",
      { matchLabels: { team: "payments" }, matchExpressions: [{ key: "stage", operator: "Exists" }] },
    ],
  ])("but not those %s", (_, selector) => {
    expect(selects(selector, LABELS)).toBe(false);
  });
});
