import { expect, test } from "vitest";
import { type NamespaceBounds, namespaceTest } from "./allowed-namespaces.ts";

const metadata = { generation: 2 };
const bounded = { allowedNamespaces: { matchLabels: { team: "payments" } } };

test.each<[string, Omit<NamespaceBounds, "metadata">, string[]]>([
  ["without a selector every namespace may use it", { spec: {} }, ["payments", "orders"]],
  [
    "those that the operator has found may",
    { spec: bounded, status: { allowedNamespaces: ["payments"], observedGeneration: 2 } },
    ["payments"],
  ],
  [
    "and still do while another selector is looked at",
    { spec: bounded, status: { allowedNamespaces: ["payments"], observedGeneration: 1 } },
    ["payments"],
  ],
  [
    "nobody may when none was found",
    { spec: bounded, status: { allowedNamespaces: [], observedGeneration: 2 } },
    [],
  ],
  ["nobody may before the operator has seen it", { spec: bounded }, []],
  [
    "all may until the operator has seen its first selector",
    { spec: bounded, status: { observedGeneration: 1 } },
    ["payments", "orders"],
  ],
  [
    "a selector that was taken away holds no longer",
    { spec: {}, status: { allowedNamespaces: ["payments"], observedGeneration: 1 } },
    ["payments", "orders"],
  ],
  [
    "those that were found before may while the Egress is not understood",
    { spec: {}, status: { allowedNamespaces: ["payments"], observedGeneration: 2 }, invalid: "spec: no" },
    ["payments"],
  ],
  [
    "all may that did when it had no selector, and was understood",
    { spec: {}, status: { observedGeneration: 2 }, invalid: "spec: no" },
    ["payments", "orders"],
  ],
  ["nobody may when it was never understood", { spec: {}, invalid: "spec: no" }, []],
])("%s", (_, egress, expected) => {
  expect(["payments", "orders"].filter(namespaceTest({ metadata, ...egress }))).toEqual(expected);
});
