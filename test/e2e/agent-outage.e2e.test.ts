import { setTimeout as sleep } from "node:timers/promises";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, expect, test } from "vitest";
import { probePod, scriptPod } from "../bed/workload/manifests.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { INSTALLED, pluginOnNodes } from "./kit/plugin.ts";
import { bringBackNodeAgents, takeAwayNodeAgents } from "./kit/product.ts";
import { tracesOf } from "./kit/traces.ts";
import { Transfers } from "./kit/transfers.ts";
import {
  client,
  describeOnline,
  kubectl,
  nodeOf,
  player,
  podEvents,
  sliceAddresses,
  world,
} from "./kit/world.ts";

const LOOK_INTERVAL_MS = 1000;

/** Where host-local keeps, for each range, the address that it gave out last (plugins/ipam/host-local). */
const HOST_LOCAL = "/host/var/lib/cni/networks";

const common = { namespace: NAMESPACE, image: world.image };
const leaving = probePod(client("leaver", INTERNET_EGRESS));
const bystander = scriptPod({ ...common, name: "new-bystander" }, "sleep infinity");

describeOnline("while there is no node agent", (internet) => {
  let transfers: Transfers;
  let leaver: ProbePod;
  let heir: ReturnType<typeof scriptPod>;
  let waiting: ReturnType<typeof scriptPod>;

  beforeAll(async () => {
    await kubectl.apply(leaving);
    leaver = await ProbePod.ready(kubectl, NAMESPACE, leaving.metadata.name);
    heir = scriptPod({ ...common, name: "heir", node: leaver.node }, "sleep infinity");
    // With each attempt to start it, it takes an address of its node.
    const node = world.nodes.find((name) => name !== leaver.node) ?? leaver.node;
    waiting = scriptPod({ ...client("new-client", INTERNET_EGRESS), node }, "sleep infinity");
    transfers = await Transfers.start(internet, await Promise.all([player("alice"), player("bob")]));
    await takeAwayNodeAgents();
  });

  afterAll(async () => {
    await bringBackNodeAgents();
    await kubectl.delete([leaving, bystander, waiting, heir], { wait: false });
    await transfers.stop();
  });

  test("a new pod that is no client starts, a new client does not", async () => {
    await kubectl.apply(bystander, waiting);
    await kubectl.wait(["pod", bystander.metadata.name, "-n", NAMESPACE], "condition=Ready");
    const phase = ["get", "pod", waiting.metadata.name, "-n", NAMESPACE, "-o", "jsonpath={.status.phase}"];
    expect(await kubectl.run(phase)).toBe("Pending");
  });

  test("a client can go, and its address is given to no other pod", async () => {
    await kubectl.delete([leaving]);
    expect(await sliceAddresses(INTERNET_EGRESS)).toContain(leaver.ipv4);
    const node = await nodeOf(leaver);
    await node.run(`
      for last in ${HOST_LOCAL}/*/last_reserved_ip.0; do echo -n ${before(leaver.ipv4)} > "$last"; done
      for last in ${HOST_LOCAL}/*/last_reserved_ip.1; do echo -n ${before(leaver.ipv6)} > "$last"; done`);
    await kubectl.apply(heir);
    await waitUntil(async () => (await podEvents(heir)).some((message) => message.includes(leaver.ipv4)), {
      what: `an event of pod heir that names ${leaver.ipv4}`,
      timeoutMs: 120_000,
      intervalMs: 1000,
      explain: async () => {
        const address = ["get", "pod", heir.metadata.name, "-n", NAMESPACE, "-o", "jsonpath={.status.podIP}"];
        return `its address: ${await kubectl.run(address)}\n${(await podEvents(heir)).join("\n")}`;
      },
    });
    expect(await podAddresses()).not.toContain(leaver.ipv4);
    expect(await podAddresses()).not.toContain(leaver.ipv6);
  });

  test("the plugin stays on the nodes, and transfers go on", async () => {
    expect(await pluginOnNodes()).toEqual([INSTALLED, INSTALLED]);
    await transfers.goOn();
  });

  test("until it is back: the client starts, and the address is withdrawn before another pod has it", async () => {
    const back = bringBackNodeAgents();
    expect(await pluginUntil(back)).toEqual(new Set([`${INSTALLED}, ${INSTALLED}`]));
    const pods = [waiting, heir].map(({ metadata }) => metadata.name);
    await kubectl.wait(["pods", ...pods, "-n", NAMESPACE], "condition=Ready");
    expect(await tracesOf(INTERNET_EGRESS, leaver)).toEqual([]);
    await transfers.goOn();
  });
});

/** All that the nodes were seen to hold of the plugin until something is done. */
async function pluginUntil(done: Promise<unknown>): Promise<Set<string>> {
  const seen = new Set<string>();
  let isDone = false;
  const look = async () => {
    while (!isDone) {
      seen.add((await pluginOnNodes()).join(", "));
      // Each look costs an emulated node what a starting agent needs.
      await sleep(LOOK_INTERVAL_MS);
    }
  };
  const noteEnd = () => {
    isDone = true;
  };
  await Promise.all([done.finally(noteEnd), look()]);
  return seen;
}

/** The addresses of all pods in the cluster. */
async function podAddresses(): Promise<string[]> {
  const list = ["get", "pods", "--all-namespaces", "-o", "jsonpath={.items[*].status.podIPs[*].ip}"];
  return (await kubectl.run(list)).split(" ");
}

/** The address before another. */
function before(address: string): string {
  const [, start = "", last = ""] = /^(.*[.:])(\w+)$/.exec(address) ?? [];
  return start.endsWith(".")
    ? `${start}${Number(last) - 1}`
    : `${start}${(Number.parseInt(last, 16) - 1).toString(16)}`;
}
