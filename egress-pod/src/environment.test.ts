import { parseEnvironment } from "@egress-nat/program";
import { expect, test } from "vitest";
import { Environment } from "./environment.ts";

const REQUIRED = { EGRESS_NAMESPACE: "internet", EGRESS_NAME: "egress" };

test("cluster ranges are a comma-separated list", () => {
  const env = { ...REQUIRED, CLUSTER_RANGES: "10.244.0.0/16, fd00:244::/56" };
  expect(parseEnvironment(Environment, env).CLUSTER_RANGES).toEqual(["10.244.0.0/16", "fd00:244::/56"]);
});

test("no cluster ranges are an empty list", () => {
  expect(parseEnvironment(Environment, { ...REQUIRED, CLUSTER_RANGES: "" }).CLUSTER_RANGES).toEqual([]);
});

test("a malformed range is refused by name", () => {
  const env = { ...REQUIRED, CLUSTER_RANGES: "10.244.0.0/16,10.96.0.0/33" };
  expect(() => parseEnvironment(Environment, env)).toThrow(/CLUSTER_RANGES "10.244.0.0\/16,10.96.0.0\/33"/);
});
