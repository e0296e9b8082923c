import { expect, test } from "vitest";
import { GatewayEnvironment } from "./gateway-environment.ts";

const EARLIER = {
  ...{ EGRESS_NAMESPACE: "internet", EGRESS_NAME: "nat", POD_IPS: "10.244.1.7" },
  CLUSTER_RANGES_NAMESPACE: "egress-nat",
};

test("a gateway of an operator that does not know its grace period drains for as long as the Egress says", () => {
  expect(GatewayEnvironment.parse(EARLIER).DRAIN_TIMEOUT_SECONDS).toBe(Infinity);
  expect(GatewayEnvironment.parse({ ...EARLIER, DRAIN_TIMEOUT_SECONDS: "45" }).DRAIN_TIMEOUT_SECONDS).toBe(
    45,
  );
  expect(GatewayEnvironment.safeParse({ ...EARLIER, DRAIN_TIMEOUT_SECONDS: "soon" }).success).toBe(false);
});
