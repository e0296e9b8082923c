import { liveFlows } from "@egress-nat/founat";
import { everywhere, useClientAndGateway } from "@egress-nat/founat-testing/data-path";
import { addressOf, ask, kernelOf } from "@egress-nat/founat-testing/topology";
import { createLogger } from "@egress-nat/program";
import { beforeAll, expect, test } from "vitest";
import { type Drained, drain } from "./drain.ts";

/** Of answers in one flow: longer than a gateway waits at least. */
const TALK = { times: 40, pause: 0.2 };

const logger = createLogger({ name: "test", level: "silent" });
const { client } = useClientAndGateway();

beforeAll(() => client.apply(everywhere));

test("a gateway that drains serves the flows that it has, new ones too, and ends when the last is over", async () => {
  const internet = addressOf("internet", "ipv4");
  const talk = ask("client", "tcp", internet, TALK);
  await expect.poll(() => liveFlows(kernelOf("gateway")), { timeout: 20_000 }).toBeGreaterThan(0);
  let end: Drained["reason"] | undefined;
  const drained = drain({
    hasClients: () => true,
    liveFlows: () => liveFlows(kernelOf("gateway")),
    timeoutMs: () => 600_000,
    onProgress: () => undefined,
    logger,
  }).then(({ reason }) => {
    end = reason;
  });

  const ours = addressOf("gateway", "ipv4");
  expect(await ask("client", "tcp", internet)).toBe(ours);
  expect((await talk).split("\n")).toEqual(Array.from({ length: TALK.times }, () => ours));
  expect(end).toBeUndefined();
  await drained;
  expect(end).toBe("idle");
});
