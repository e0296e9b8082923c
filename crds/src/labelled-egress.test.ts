import { expect, test } from "vitest";
import { egressKeys } from "./labelled-egress.ts";
import { EGRESS_LABEL } from "./names.ts";

test("an object belongs to the Egress whose label it has, in its own namespace", () => {
  expect(egressKeys({ metadata: { namespace: "internet", labels: { [EGRESS_LABEL]: "nat" } } })).toEqual([
    "internet/nat",
  ]);
});

test("an object without the label belongs to none", () => {
  expect(egressKeys({ metadata: { namespace: "internet" } })).toEqual([]);
});
