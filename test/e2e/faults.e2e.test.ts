import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { INTERNET_EGRESS } from "./kit/names.ts";
import { INSTALLED, pluginOnNodes } from "./kit/plugin.ts";
import { killProcesses, nodeAgentsReady, operatorReady, pauseGateways } from "./kit/product.ts";
import { Transfers } from "./kit/transfers.ts";
import { describeOnline, gatewaysReady, player, world } from "./kit/world.ts";

const APISERVER_OUTAGE_MS = 60_000;
/** Of a gateway's program: less than three times what its readiness probe waits. */
const STANDSTILL_MS = 22_000;

describeOnline("transfers that run since before", (internet) => {
  let transfers: Transfers;

  beforeAll(async () => {
    transfers = await Transfers.start(internet, await Promise.all([player("alice"), player("bob")]));
  });

  afterAll(() => transfers.stop());

  test("go on while the node agents and the operator are killed and restarted", async () => {
    await Promise.all([killProcesses("node-agent"), killProcesses("operator")]);
    expect(await pluginOnNodes()).toEqual([INSTALLED, INSTALLED]);
    await transfers.goOn();
  });

  test("go on while the programs of all gateways stand still", async () => {
    await pauseGateways(INTERNET_EGRESS, STANDSTILL_MS);
    await transfers.goOn();
  });

  test.runIf(world.apiserver && world.long)(
    "go on while the apiserver is stopped for 60 seconds",
    async () => {
      const { stop = [], start = [] } = world.apiserver ?? {};
      await command(stop);
      await sleep(APISERVER_OUTAGE_MS);
      await command(start);
      await transfers.goOn();
      await Promise.all([nodeAgentsReady(), operatorReady(), gatewaysReady(INTERNET_EGRESS)]);
      await transfers.goOn();
    },
  );
});

async function command([file = "", ...args]: readonly string[]): Promise<void> {
  await execa(file, args, { stdin: "ignore" });
}
