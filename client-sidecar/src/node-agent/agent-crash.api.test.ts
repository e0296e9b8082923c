import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import {
  CLUSTER_RANGES_CONFIG_MAP,
  clusterRangesData,
  EGRESS_RESOURCE,
  EgressClientSlice,
  SLICE_RESOURCE,
  sliceName,
} from "@egress-nat/crds";
import {
  Cache,
  CONFIG_MAP_RESOURCE,
  createTransport,
  loadCredentials,
  resourcePath,
  type Transport,
} from "@egress-nat/kube";
import { createNamespace } from "@egress-nat/kube/testing/namespace";
import { createLogger } from "@egress-nat/program";
import { afterAll, beforeAll, describe, expect, inject, test, vi } from "vitest";
import { NodeState } from "../records/node-state.ts";
import { agentInFolder, type NodeInFolder, netnsDirectory } from "../testing/agent-in-folder.ts";
import { CompiledPlugin } from "../testing/compiled-plugin.ts";
import { FakeGateways } from "../testing/fake-gateways.ts";
import { runInBackground } from "../testing/in-background.ts";
import { LastingNetworks, setUpIn } from "../testing/lasting-networks.ts";
import { locationsIn } from "../testing/locations.ts";
import type { Death } from "../testing/mortal-agent.ts";
import { MortalProcess } from "../testing/mortal-process.ts";
import { createObject, createServedEgress } from "../testing/served-egress.ts";

const GATEWAY = "198.51.100.1";

/** The files of two addresses and of a record, the slice, the network namespace. */
const FEWEST_STEPS = 5;

const logger = createLogger({ name: "test", level: "silent" });

let transport: Transport;
let plugin: CompiledPlugin;
let namespace: string;
let gateways: FakeGateways;
let gatewayPort: number;
let stopWatching: () => Promise<void>;
/** By node, the names of the clients in each version of its slice. */
const versions = new Map<string, (readonly string[])[]>();

beforeAll(async () => {
  const credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  transport = createTransport({ credentials, logger });
  plugin = await CompiledPlugin.compile();
  namespace = await createNamespace(transport, "agent-crash");
  gateways = new FakeGateways();
  await gateways.start(transport, namespace, logger);
  gatewayPort = await gateways.add(GATEWAY);
  const where = { transport, namespace };
  await createObject(where, CONFIG_MAP_RESOURCE, {
    metadata: { namespace, name: CLUSTER_RANGES_CONFIG_MAP },
    data: clusterRangesData(["10.96.0.0/16"]),
  });
  await createServedEgress(where, "nat", [GATEWAY]);
  const parse = (raw: unknown) => EgressClientSlice.parse(raw);
  const slices = new Cache({ transport, resource: SLICE_RESOURCE, namespace, parse, logger });
  slices.onChange(({ type, object: { nodeName, clients } }) => {
    const names = type === "deleted" ? [] : clients.map(({ name }) => name);
    versions.set(nodeName, [...(versions.get(nodeName) ?? []), names]);
  });
  stopWatching = runInBackground(slices);
  await slices.whenSynced();
});

afterAll(async () => {
  await stopWatching();
  await gateways.close();
  await transport.request({ method: "DELETE", path: resourcePath(EGRESS_RESOURCE, { namespace }) });
  await transport.request({ method: "DELETE", path: resourcePath(SLICE_RESOURCE, { namespace }) });
  transport.close();
  plugin.remove();
});

/** A pod, by the last part of its addresses. */
interface Pod {
  readonly name: string;
  readonly number: number;
}

const BYSTANDER: Pod = { name: "bystander", number: 1 };
const VICTIM: Pod = { name: "victim", number: 2 };
/** Has the victim's addresses. */
const HEIR: Pod = { name: "heir", number: 2 };

/** What the agent is killed in. */
interface Work {
  readonly before: (node: Node) => Promise<unknown>;
  /** @returns when the agent is dead, or has done it */
  readonly work: (node: Node, agent: MortalProcess) => Promise<unknown>;
}

const ADDITION: Work = {
  before: () => Promise.resolve(),
  work: async (node, agent) => {
    const added = await node.run("ADD", VICTIM);
    if (added.exitCode === 0) return;
    expect(added).toMatchObject({ result: { code: 11 } });
    expect(await agent.isAlive()).toBe(false);
    // Nothing is done to a pod's network namespace that nobody would undo.
    if (node.setUp(VICTIM) !== undefined) expect(node.records()).toContain(VICTIM.name);
  },
};

const DELETION: Work = {
  before: (node) => node.mustAdd(VICTIM),
  work: async (node, agent) => {
    await node.mustDelete(VICTIM);
    const isDone = async () => isDeepStrictEqual(await node.all(), allOf([BYSTANDER]));
    await eventually(async () => expect((await isDone()) || !(await agent.isAlive())).toBe(true));
  },
};

/** Whether the runtime deletes the pod while there is no agent; else it does when the next one is there. */
type Sequel = "next agent, then DEL" | "DEL, then next agent";

/** @returns whether the agent was killed: where it was not, it had fewer steps to do */
async function killedAt(
  step: number,
  death: Death,
  sequel: Sequel,
  { before, work }: Work,
): Promise<boolean> {
  await using node = new Node();
  await using agent = node.startMortalAgent();
  await eventually(() => node.mustAdd(BYSTANDER));
  const guard = node.setUp(BYSTANDER);
  await before(node);
  await agent.tell({ step, death });
  await work(node, agent);
  const isKilled = !(await agent.isAlive());
  await agent[Symbol.asyncDispose]();

  // Whom a gateway may trust has a file for each address, so that nobody else is given it.
  expect(node.trusted()).toEqual(expect.arrayContaining([...(await node.sliceAddresses())]));
  const expectBystander = async () => {
    expect(await node.sliceAddresses()).toEqual(expect.arrayContaining([...addressesOf(BYSTANDER)]));
    expect(node.setUp(BYSTANDER)).toEqual(guard);
  };
  await expectBystander();
  if (sequel === "DEL, then next agent") {
    await node.delete(VICTIM);
    await expectBystander();
    await node.startAgent();
  } else {
    await node.startAgent();
    await expectBystander();
    // Of whom the agent knows it cleans the network namespace itself, where that stays as with nerdctl or podman.
    if (node.records().includes(VICTIM.name)) await node.mustDelete(VICTIM);
    else await node.delete(VICTIM);
  }
  await eventually(async () => {
    await expectBystander();
    expect(await node.all()).toEqual(allOf([BYSTANDER]));
  });
  expect((await node.run("ADD", HEIR)).exitCode).toBe(0);
  expect(await node.all()).toEqual(allOf([BYSTANDER, HEIR]));
  await expectBystander();
  await eventually(() => expect(versions.get(node.name)?.at(-1)).toContain(HEIR.name));
  for (const names of versions.get(node.name) ?? []) expect(names).toContain(BYSTANDER.name);
  return isKilled;
}

// At the same time: most of each is the start of processes, and waiting.
describe.concurrent.each([
  ["adds", ADDITION],
  ["deletes", DELETION],
])("an agent that is killed while it %s a client", (_, work) => {
  test.each([
    // Between two steps is after the one and before the other, so that each sequel is seen between any two.
    ["before each of its steps, and the runtime deletes the pod at once", "before", "DEL, then next agent"],
    ["after each of its steps, and the runtime deletes the pod later", "after", "next agent, then DEL"],
  ] as const)("%s: the next one ends in the right state", async (_, death, sequel) => {
    let steps = 0;
    do steps += 1;
    while (await killedAt(steps, death, sequel, work));
    expect(steps).toBeGreaterThan(FEWEST_STEPS);
  });
});

/** A node whose container runtime is the test. */
class Node implements AsyncDisposable {
  readonly name = `node-${Math.random().toString(36).slice(2, 10)}`;
  readonly #folder = mkdtempSync(join(tmpdir(), "egress-nat-crash-"));
  readonly #state = new NodeState(locationsIn(this.#folder), logger);
  #stop: () => Promise<void> = () => Promise.resolve();

  constructor() {
    mkdirSync(netnsDirectory(this.#folder));
  }

  startMortalAgent(): MortalProcess {
    return MortalProcess.start({ ...this.#options(), kubeconfig: inject("kubeconfig") });
  }

  /** As the DaemonSet does. */
  async startAgent(): Promise<void> {
    const networks = new LastingNetworks(netnsDirectory(this.#folder));
    const agent = agentInFolder(this.#options(), transport, networks);
    this.#stop = runInBackground(agent);
    await eventually(() => expect(agent.check.ok).toBe(true));
  }

  async mustAdd(pod: Pod): Promise<void> {
    expect(await this.run("ADD", pod)).toMatchObject({ exitCode: 0 });
  }

  async mustDelete(pod: Pod): Promise<void> {
    expect(await this.run("DEL", pod)).toMatchObject({ exitCode: 0 });
  }

  /** As containerd does: the network namespace goes with the pod. */
  async delete(pod: Pod): Promise<void> {
    await this.mustDelete(pod);
    rmSync(this.#netns(pod), { force: true });
  }

  run(command: "ADD" | "DEL", pod: Pod) {
    const netns = this.#netns(pod);
    if (command === "ADD") writeFileSync(netns, "");
    const environment = {
      ...{ CNI_COMMAND: command, CNI_CONTAINERID: pod.name, CNI_NETNS: netns },
      ...{ CNI_IFNAME: "eth0", CNI_PATH: "/opt/cni/bin" },
      CNI_ARGS: `K8S_POD_NAMESPACE=apps;K8S_POD_NAME=${pod.name};K8S_POD_UID=uid-${pod.name}`,
    };
    const [ipv4, ipv6] = addressesOf(pod);
    const configuration = {
      ...{ cniVersion: "1.0.0", name: "pods", type: "egress-nat" },
      prevResult: {
        cniVersion: "1.0.0",
        interfaces: [{ name: "eth0", sandbox: netns }],
        ips: [`${ipv4}/24`, `${ipv6}/64`].map((address) => ({ address, interface: 0 })),
      },
      runtimeConfig: {
        "io.kubernetes.cri.pod-annotations": { [`egress.coil.cybozu.com/${namespace}`]: "nat" },
      },
    };
    return plugin.run(this.#folder, environment, JSON.stringify(configuration));
  }

  /** What is known of clients here: names by record, addresses by file, and what gateways are told. */
  async all() {
    return {
      records: this.records(),
      trusted: this.trusted(),
      slice: (await this.#slice()).map(({ uid, addresses }) => ({ uid, addresses })),
      setUp: [BYSTANDER, VICTIM, HEIR].filter((pod) => this.setUp(pod) !== undefined),
    };
  }

  records(): readonly string[] {
    return this.#state
      .recordIds()
      .map((id) => this.#state.readClient(id)?.pod.name ?? id)
      .toSorted();
  }

  trusted(): readonly string[] {
    return this.#state.trustedAddresses().toSorted();
  }

  setUp(pod: Pod): unknown {
    return setUpIn(this.#netns(pod));
  }

  async sliceAddresses(): Promise<readonly string[]> {
    return (await this.#slice()).flatMap(({ addresses }) => addresses);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    rmSync(this.#folder, { recursive: true });
  }

  async #slice() {
    const path = resourcePath(SLICE_RESOURCE, { namespace, name: sliceName("nat", this.name) });
    return EgressClientSlice.parse(await transport.request({ method: "GET", path })).clients;
  }

  #netns({ name }: Pod): string {
    return join(netnsDirectory(this.#folder), name);
  }

  #options(): NodeInFolder {
    return { nodeName: this.name, folder: this.#folder, namespace, gatewayPort };
  }
}

function addressesOf({ number }: Pod): readonly [string, string] {
  return [`10.244.0.${number}`, `fd00:244::${number}`];
}

/** What is known where these are the clients. */
function allOf(pods: readonly Pod[]): Awaited<ReturnType<Node["all"]>> {
  return {
    records: pods.map(({ name }) => name),
    trusted: pods.flatMap(addressesOf).toSorted(),
    slice: pods.map((pod) => ({ uid: `uid-${pod.name}`, addresses: [...addressesOf(pod)] })),
    setUp: [...pods],
  };
}

/** Under load an apiserver takes seconds for what takes milliseconds else, and so does the start of an agent. */
function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: 90_000 });
}
