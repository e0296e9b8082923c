import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, clusterNames, isUp, removeCluster } from "./cluster.ts";
import { upOneNode } from "./one-node.ts";
import { PAIR } from "./pair.ts";

const [A, B] = PAIR;

let a: Cluster;
let b: Cluster;

beforeAll(async () => {
  a = await upOneNode(A);
  b = await upOneNode(B);
});

afterAll(async () => {
  for (const name of PAIR) await removeCluster(name);
});

test("two clusters of the same addresses know nothing of each other", async () => {
  expect(a.plan.nodes).toEqual(b.plan.nodes);
  expect(await readyNodes(a)).toEqual(["node1=True"]);
  expect(await readyNodes(b)).toEqual(["node1=True"]);
  await a.kubectl(["create", "namespace", "only-here"]);
  expect(await b.kubectl(["get", "namespace", "only-here", "--ignore-not-found"])).toBe("");
});

test("a cluster's network has no way out", async () => {
  for (const { plan } of [a, b]) {
    for (const family of ["-4", "-6"]) {
      const { stdout } = await execa("ip", ["-n", plan.netns, family, "route", "show", "default"]);
      expect(stdout).toBe("");
    }
    const { stdout } = await execa("ip", ["-n", plan.netns, "-json", "link", "show", "type", "veth"]);
    const peers = (JSON.parse(stdout) as { ifname: string }[]).map(({ ifname }) => ifname);
    expect(peers.toSorted()).toEqual(plan.internet.legs.map(({ name }) => name).toSorted());
  }
});

test("up leaves a cluster alone that is up", async () => {
  const before = a.processes();
  const again = await upOneNode(A);
  expect(again.processes()).toEqual(before);
  expect([...before.values()]).not.toContain(undefined);
});

test("up with other options says how to end the cluster that is there", async () => {
  await expect(upOneNode(A, { proxyMode: "iptables" })).rejects.toThrow(
    `npm run cluster -- down --name ${A}`,
  );
});

test("down takes one cluster away with all that is its own, and is done again without harm", async () => {
  await removeCluster(A);
  await removeCluster(A);
  expect(await isUp(A)).toBe(false);
  expect(await clusterNames()).not.toContain(A);
  expect((await networkNamespaces()).filter((name) => name.startsWith(a.plan.netns))).toEqual([]);
  expect([...a.processes().values()].filter((pid) => pid !== undefined)).toEqual([]);
  expect(await isUp(B)).toBe(true);
  expect(await readyNodes(b)).toEqual(["node1=True"]);
});

async function readyNodes(cluster: Cluster): Promise<string[]> {
  const ready = '{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}';
  const output = await cluster.kubectl(["get", "nodes", "-o", `jsonpath={range .items[*]}${ready} {end}`]);
  return output.trim().split(" ");
}

async function networkNamespaces(): Promise<string[]> {
  const { stdout } = await execa("ip", ["netns", "list"]);
  return stdout.split("\n").map((line) => line.split(" ")[0] ?? "");
}
