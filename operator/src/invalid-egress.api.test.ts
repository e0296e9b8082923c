import { EGRESS_RESOURCE } from "@egress-nat/crds";
import { asEarlierRelease, NO_NETWORK } from "@egress-nat/test/bed/api/earlier-release";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { CHILD_RESOURCES, type ChildKind } from "./egress/children/index.ts";
import { Playground } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { RunningOperator } from "./testing/running-operator.ts";

const eventually = { timeout: 30_000, interval: 20 };

const NETWORKS = ["192.0.2.0/24"];
const COUNTS = { replicas: 2, readyReplicas: 2, availableReplicas: 2, updatedReplicas: 2 };

let play: Playground;

beforeAll(async () => {
  play = await Playground.create(inject("kubeconfig"));
});

afterAll(() => play.transport.close());

const start = () => RunningOperator.start(confinedTo(play.namespace, play.transport), play.namespace);

const destinations = (value: readonly string[]) =>
  play.patch(EGRESS_RESOURCE, "nat", { spec: { destinations: value } });

const conditions = () => conditionsOf("nat");

async function conditionsOf(name: string): Promise<Readonly<Record<string, string>>> {
  const egress = await play.get(EGRESS_RESOURCE, name);
  const all: { type: string; status: string; reason: string }[] = egress.status?.conditions ?? [];
  return Object.fromEntries(all.map(({ type, status, reason }) => [type, `${status} ${reason}`]));
}

/** "Deployment: its resourceVersion", and so on. */
async function children(name: string): Promise<Readonly<Record<string, string | undefined>>> {
  const kinds = Object.keys(CHILD_RESOURCES) as ChildKind[];
  const found = await Promise.all(kinds.map((kind) => play.child(kind, name)));
  return Object.fromEntries(kinds.map((kind, index) => [kind, found[index]?.metadata.resourceVersion]));
}

test("an Egress that is not understood says so, its gateways are left as they are, and it recovers", async () => {
  await using operator = start();
  await play.createEgress("nat", { destinations: NETWORKS, replicas: 2 });
  await expect.poll(() => play.child("deployment", "nat"), eventually).toBeDefined();
  await play.patch(
    CHILD_RESOURCES.deployment,
    "nat",
    { status: { observedGeneration: 1, ...COUNTS } },
    "status",
  );
  await expect.poll(conditions, eventually).toMatchObject({ Available: "True GatewaysAvailable" });
  const before = await play.status("nat");
  const made = await children("nat");

  await asEarlierRelease(play.transport, async () => {
    await destinations([...NETWORKS, NO_NETWORK]);
    await play.createEgress("never-understood", { destinations: [NO_NETWORK] }).catch(() => undefined);
  });
  await expect
    .poll(conditions, eventually)
    .toMatchObject({ Available: "True GatewaysAvailable", Degraded: "True InvalidSpec" });
  const { status } = await play.get(EGRESS_RESOURCE, "nat");
  const degraded = status.conditions.find(({ type }: { type: string }) => type === "Degraded");
  expect(degraded.message).toMatch(
    /Egress .*\/nat is not understood by this release: spec\.destinations\[1\]: "192\.0\.2\.0\/33" is not a CIDR: .*kubectl edit egress/,
  );
  expect(status).toMatchObject({ serviceIPs: before?.serviceIPs, replicas: 2, readyReplicas: 2 });
  await expect.poll(() => play.events("nat"), eventually).toContain("Warning InvalidSpec");
  await expect
    .poll(() => conditionsOf("never-understood"), eventually)
    .toMatchObject({
      Available: "False NoGateway",
      Degraded: "True InvalidSpec",
    });
  expect(await operator.metric("egress_nat_operator_invalid_objects")).toEqual([
    { kind: "Egress", value: 2 },
  ]);

  // An operator that starts now has never understood it.
  await operator.stop();
  await using later = start();
  await expect.poll(() => later.metric("egress_nat_operator_leader"), eventually).toEqual([{ value: 1 }]);
  await play.patch(
    CHILD_RESOURCES.deployment,
    "nat",
    { status: { readyReplicas: 1, availableReplicas: 1 } },
    "status",
  );
  await expect
    .poll(async () => (await play.get(EGRESS_RESOURCE, "nat")).status.readyReplicas, eventually)
    .toBe(1);
  const { deployment: _, ...untouched } = made;
  expect(await children("nat")).toMatchObject(untouched);
  expect(await play.kinds("never-understood")).toEqual([]);

  await destinations(NETWORKS);
  await expect.poll(conditions, eventually).toMatchObject({ Degraded: "False AsExpected" });
  expect(await children("nat")).toMatchObject(untouched);
});
