import { expect, test } from "vitest";
import { allowedNamespaces, concerns, NamespaceHead } from "./namespaces.ts";
import { anEgress } from "./testing/egress.ts";

const ALLOWED = { egress: "allowed" };
const bounded = { allowedNamespaces: { matchLabels: ALLOWED } };

function namespace(name: string, labels: Readonly<Record<string, string>> = {}) {
  return NamespaceHead.parse({ metadata: { name, uid: name, resourceVersion: "1", labels } });
}

const NAMESPACES = [namespace("payments", ALLOWED), namespace("default"), namespace("orders", ALLOWED)];

test("an Egress allows the namespaces that it selects, in a stable order", () => {
  expect(allowedNamespaces(anEgress(bounded), NAMESPACES)).toEqual(["orders", "payments"]);
});

test("an Egress without a selector names none, because it allows all", () => {
  expect(allowedNamespaces(anEgress({}), NAMESPACES)).toBeUndefined();
});

test.each([
  ["gets the label", "default", ALLOWED, true],
  ["had it all the time", "payments", { ...ALLOWED, team: "payments" }, false],
  ["loses it", "payments", {}, true],
  ["never had it", "default", {}, false],
  ["is gone", "payments", undefined, true],
  ["that nobody knew is gone", "default", undefined, false],
])("a namespace that %s concerns it accordingly", (_, name, labels, expected) => {
  const egress = anEgress(bounded, { status: { allowedNamespaces: ["payments"] } });
  expect(concerns(egress, name, labels)).toBe(expected);
  expect(concerns(anEgress({}), name, labels)).toBe(false);
});
