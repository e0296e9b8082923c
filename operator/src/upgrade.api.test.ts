import { EGRESS_RESOURCE } from "@egress-nat/crds";
import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { CHILD_RESOURCES } from "./egress/children/index.ts";
import { type Anything, Playground } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { RunningOperator, SETTINGS } from "./testing/running-operator.ts";

const eventually = { timeout: 30_000, interval: 20 };

let play: Playground;
let operator: RunningOperator;

beforeEach(async () => {
  play = await Playground.create(inject("kubeconfig"));
});

afterEach(async () => {
  await operator.stop();
  play.transport.close();
});

/** The operator of a release, which brings an image of its own. */
function start(release: string): void {
  const settings = { ...SETTINGS, image: `egress-pod:${release}` };
  const { namespace } = play;
  operator = RunningOperator.start(confinedTo(namespace, play.transport), namespace, release, {
    ...{ settings, maxConcurrentRollouts: 1 },
  });
}

/** The gateways of an Egress are all there, and as the Deployment wants them; this API server has no Deployment controller. */
async function rollOut(name: string): Promise<void> {
  await expect.poll(() => play.child("deployment", name), eventually).toBeDefined();
  const { metadata, spec } = await play.child("deployment", name);
  const { replicas } = spec;
  const counts = {
    replicas,
    updatedReplicas: replicas,
    readyReplicas: replicas,
    availableReplicas: replicas,
  };
  await report(name, { observedGeneration: metadata.generation, ...counts, conditions: [COMPLETE] });
}

const COMPLETE = { type: "Progressing", status: "True", reason: "NewReplicaSetAvailable", message: "done" };

const report = (name: string, status: object): Promise<Anything> =>
  play.patch(CHILD_RESOURCES.deployment, name, { status }, "status");

const pause = (name: string, value: "true" | null): Promise<Anything> =>
  play.patch(EGRESS_RESOURCE, name, {
    metadata: { annotations: { "coil.cybozu.com/pause-rollout": value } },
  });

/** Who has gateways of which release, by name. */
async function releases(): Promise<Readonly<Record<string, string>>> {
  const deployments = await play.list(CHILD_RESOURCES.deployment);
  return Object.fromEntries(
    deployments.map(({ metadata, spec }) => [
      metadata.name,
      spec.template.spec.containers[0].image.replace("egress-pod:", ""),
    ]),
  );
}

const upgraded = async () =>
  Object.entries(await releases()).flatMap(([name, release]) =>
    release === "v2" && !name.startsWith("probe-") ? [name] : [],
  );

/** Waits until the operator has looked at all that is there: its turn comes last. */
async function lookedAtAll(name: string): Promise<void> {
  await play.createEgress(name);
  await expect.poll(() => play.conditions(name), eventually).toMatchObject({ Degraded: "False AsExpected" });
}

test("an upgrade replaces the gateways of one Egress after another, and of those that do not serve last", async () => {
  const serving = ["a", "b", "c"];
  start("v1");
  for (const name of [...serving, "broken", "held"]) {
    await play.createEgress(name);
    await rollOut(name);
  }
  await pause("held", "true");
  await report("broken", { readyReplicas: 0, availableReplicas: 0 });
  for (const name of serving)
    await expect
      .poll(() => play.conditions(name), eventually)
      .toMatchObject({ Progressing: "False Complete" });
  await operator.stop();

  start("v2");
  await expect.poll(upgraded, eventually).toHaveLength(1);
  await lookedAtAll("probe-1");
  const [first = ""] = await upgraded();
  expect(await upgraded()).toEqual([first]);
  expect(serving).toContain(first);
  const [next = "", other = ""] = serving.filter((name) => name !== first);
  for (const [name, reason] of [
    [next, "UpgradeWaits"],
    [other, "UpgradeWaits"],
    ["held", "UpgradePaused"],
  ] as const) {
    await expect
      .poll(() => play.conditions(name), eventually)
      .toMatchObject({ Available: "True GatewaysAvailable", Progressing: `False ${reason}` });
  }

  // What an author asks for is done at once: as many gateways, and other ones.
  await play.patchEgress(next, { replicas: 3 });
  await expect.poll(async () => (await play.child("deployment", next)).spec.replicas, eventually).toBe(3);
  const strategy = async () => (await play.child("deployment", "held")).spec.strategy;
  await play.patchEgress("held", { strategy: { type: "Recreate" } });
  await expect.poll(strategy, eventually).toEqual({ type: "Recreate" });
  await play.patchEgress("held", {
    strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0 } },
  });
  await expect
    .poll(strategy, eventually)
    .toEqual({ type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 0 } });
  expect(await upgraded()).toEqual([first]);
  await play.patchEgress(other, { drainTimeoutSeconds: 60 });
  await expect.poll(upgraded, eventually).toContain(other);
  await rollOut(other);

  // Another operator goes on from there.
  await operator.stop();
  start("v2");
  await lookedAtAll("probe-2");
  expect((await upgraded()).toSorted()).toEqual([first, other].toSorted());

  // What is broken is not spread, unless somebody says that it does not matter.
  const { generation } = (await play.child("deployment", first)).metadata;
  const stuck = { type: "Progressing", status: "False", reason: "ProgressDeadlineExceeded", message: "late" };
  await report(first, { observedGeneration: generation, conditions: [stuck] });
  await expect
    .poll(() => play.conditions(first), eventually)
    .toMatchObject({ Degraded: "True ProgressDeadlineExceeded" });
  await lookedAtAll("probe-3");
  expect(await upgraded()).not.toContain(next);
  await pause(first, "true");
  await play.patch(EGRESS_RESOURCE, next, { metadata: { annotations: { touched: "now" } } });
  await expect.poll(upgraded, eventually).toContain(next);
  expect(await upgraded()).not.toContain("broken");
  await rollOut(next);
  await expect.poll(upgraded, { ...eventually, timeout: 60_000 }).toContain("broken");
  expect(await upgraded()).not.toContain("held");
  await pause("held", null);
  await expect.poll(upgraded, eventually).toContain("held");
  await play.patchEgress("held", { strategy: { type: "Recreate", rollingUpdate: null } });
  await expect.poll(strategy, eventually).toEqual({ type: "Recreate" });
});
