import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { clientOf, scriptPod } from "../workload/manifests.ts";
import { type Probe, type ProbePod, Transfer } from "../workload/probe-pod.ts";
import { ECHO_PORT } from "./kit/internet.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { killPods, nodeAgentsReady, operatorReady, withoutNodeAgents } from "./kit/product.ts";
import { describeOnline, kubectl, player, world } from "./kit/world.ts";

const APISERVER_OUTAGE_MS = 60_000;

describeOnline("transfers that run since before", (internet) => {
  let clients: readonly ProbePod[];
  let roundTrips = 0;

  const transfers = [
    { name: "v4", address: internet.wide.ipv4 },
    { name: "v6", address: internet.wide.ipv6 },
  ];

  beforeAll(async () => {
    clients = await Promise.all([player("alice"), player("bob")]);
    const start = transfers.map(
      ({ name, address }): Probe => ({ do: "start_transfer", name, address, port: ECHO_PORT }),
    );
    await Promise.all(clients.map((client) => client.ask(start)));
    await goOn();
  });

  afterAll(async () => {
    await Promise.all(
      clients.map((client) => client.ask(transfers.map(({ name }) => ({ do: "stop_transfer", name })))),
    );
  });

  test("go on while the node agents are killed and restarted", async () => {
    await killPods("node-agent");
    await nodeAgentsReady();
    await goOn();
  });

  test("go on while there is no node agent; a new pod that is no client starts, a new client waits for the agent", async () => {
    const options = { namespace: NAMESPACE, image: world.image };
    const bystander = scriptPod({ ...options, name: "new-bystander" }, "sleep infinity");
    const client = scriptPod(
      { ...options, name: "new-client", annotations: clientOf(INTERNET_EGRESS) },
      "sleep infinity",
    );
    try {
      await withoutNodeAgents(async () => {
        await kubectl.apply(bystander, client);
        await kubectl.wait(["pod", bystander.metadata.name, "-n", NAMESPACE], "condition=Ready");
        const phase = ["get", "pod", client.metadata.name, "-n", NAMESPACE, "-o", "jsonpath={.status.phase}"];
        expect(await kubectl.run(phase)).toBe("Pending");
        await goOn();
      });
      await kubectl.wait(["pod", client.metadata.name, "-n", NAMESPACE], "condition=Ready");
    } finally {
      await kubectl.delete([bystander, client], { wait: false });
    }
  });

  test("go on while the operator is killed and restarted", async () => {
    await killPods("operator");
    await operatorReady();
    await goOn();
  });

  test.skipIf(world.apiserver === undefined)(
    "go on while the apiserver is stopped for 60 seconds",
    async () => {
      const { stop = [], start = [] } = world.apiserver ?? {};
      await command(stop);
      await sleep(APISERVER_OUTAGE_MS);
      await command(start);
      await goOn();
      await Promise.all([nodeAgentsReady(), operatorReady()]);
    },
  );

  /** Every transfer is unbroken and has moved on since the last look. */
  async function goOn(): Promise<void> {
    const ask = transfers.map(({ name }): Probe => ({ do: "transfer", name }));
    const before = roundTrips;
    await sleep(1000);
    const states = (await Promise.all(clients.map((client) => client.ask(ask)))).flat();
    const parsed = states.map((state) => Transfer.parse(state));
    expect(parsed.map(({ broken }) => broken)).toEqual(parsed.map(() => null));
    roundTrips = Math.min(...parsed.map((state) => state.roundTrips));
    expect(roundTrips).toBeGreaterThan(before);
  }
});

async function command([file = "", ...args]: readonly string[]): Promise<void> {
  await execa(file, args, { stdin: "ignore" });
}
