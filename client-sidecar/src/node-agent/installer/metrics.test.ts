import { expectStandardNames } from "@egress-nat/test/docs/metric-names";
import { Registry } from "prom-client";
import { test } from "vitest";
import { installerMetrics } from "./metrics.ts";

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  const registry = new Registry();
  installerMetrics(registry);
  await expectStandardNames(registry);
});
