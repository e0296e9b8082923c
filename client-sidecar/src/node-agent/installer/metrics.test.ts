import { expectStandardNames } from "@egress-nat/test/docs/metric-names";
import { Registry } from "prom-client";
import { test } from "vitest";
import { InstallerMetrics } from "./metrics.ts";

test("metrics are named as Prometheus wants it, and docs/operations.md says what they mean", async () => {
  const registry = new Registry();
  new InstallerMetrics(registry);
  await expectStandardNames(registry);
});
