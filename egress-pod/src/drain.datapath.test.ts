import { liveFlows } from "@egress-nat/founat";
import { everywhere, useClientAndGateway } from "@egress-nat/founat-testing/data-path";
import { addressOf, ask, kernelOf } from "@egress-nat/founat-testing/topology";
import { LIVE, meanwhile } from "@egress-nat/founat-testing/two-gateways";
import { createLogger } from "@egress-nat/program";
import { beforeAll, expect, test } from "vitest";
import { type Drained, type DrainProgress, drain } from "./drain.ts";

/** A gateway waits as long as that at least. */
const LEAST_MS = 5_000;

const logger = createLogger({ name: "test", level: "silent" });
const { client } = useClientAndGateway();

beforeAll(() => client.apply(everywhere));

test("a gateway that drains serves the flows that it has, new ones too, and ends when the last is over", async () => {
  const [internet, ours] = [addressOf("internet", "ipv4"), addressOf("gateway", "ipv4")];
  const looks: DrainProgress[] = [];
  let end: Drained["reason"] | undefined;
  let drained: Promise<void> | undefined;
  const answers = await meanwhile(
    () => ask("client", "tcp", internet, LIVE),
    async () => {
      await expect.poll(() => liveFlows(kernelOf("gateway")), { timeout: 20_000 }).toBeGreaterThan(0);
      drained = drain({
        hasClients: () => true,
        liveFlows: () => liveFlows(kernelOf("gateway")),
        timeoutMs: () => 600_000,
        onProgress: (look) => looks.push(look),
        logger,
      }).then(({ reason }) => {
        end = reason;
      });
      expect(await ask("client", "tcp", internet)).toBe(ours);
      const late = () => looks.filter(({ elapsedMs }) => elapsedMs > LEAST_MS).length;
      await expect.poll(late, { timeout: 60_000 }).toBeGreaterThan(1);
      expect(end).toBeUndefined();
    },
  );
  expect(new Set(answers.split("\n"))).toEqual(new Set([ours]));
  await drained;
  expect(end).toBe("idle");
});
