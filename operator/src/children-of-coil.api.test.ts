import { EGRESS_RESOURCE } from "@egress-nat/crds";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { CHILD_RESOURCES } from "./egress/children/index.ts";
import { Playground } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { RunningOperator } from "./testing/running-operator.ts";

const eventually = { timeout: 30_000, interval: 20 };

const { deployment, service, disruptionBudget } = CHILD_RESOURCES;
const COILS = { deployment, service, disruptionBudget } as const;

let play: Playground;

beforeAll(async () => {
  play = await Playground.create(inject("kubeconfig"));
});

afterAll(() => play.transport.close());

/** As coil v2's egress controller makes them: the Egress is their controller, the labels are coil's. */
async function createChildrenOfCoil(name: string): Promise<void> {
  const { metadata } = await play.get(EGRESS_RESOURCE, name);
  const labels = {
    "app.kubernetes.io/name": "coil",
    "app.kubernetes.io/component": "egress",
    "app.kubernetes.io/instance": name,
  };
  const owner = { apiVersion: "coil.cybozu.com/v2", kind: "Egress", name, uid: metadata.uid };
  const head = {
    metadata: { name, labels, ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }] },
  };
  await play.create(service, {
    ...head,
    spec: { selector: labels, ports: [{ port: 5555, protocol: "UDP" }], sessionAffinity: "ClientIP" },
  });
  const containers = [{ name: "egress", image: "ghcr.io/cybozu-go/coil:2" }];
  await play.create(deployment, {
    ...head,
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
  });
  await play.create(disruptionBudget, {
    ...head,
    spec: { minAvailable: 1, selector: { matchLabels: labels } },
  });
}

async function versions(name: string): Promise<readonly string[]> {
  const found = await Promise.all(Object.values(COILS).map((resource) => play.get(resource, name)));
  return found.map((object) => object.metadata.resourceVersion);
}

test("children that coil has made for the same Egress are left as they are, and the way on is told", async () => {
  await play.createEgress("nat");
  await createChildrenOfCoil("nat");
  const before = await versions("nat");
  await using _ = RunningOperator.start(confinedTo(play.namespace, play.transport), play.namespace);

  await expect
    .poll(() => play.conditions("nat"), eventually)
    .toMatchObject({ Degraded: "True NameConflict" });
  const degraded = (await play.status("nat"))?.conditions?.find(({ type }) => type === "Degraded");
  const { namespace } = play;
  expect(degraded?.message).toMatch(
    `Service ${namespace}/nat exists and names this Egress as its owner, but another program has created it, most likely coil`,
  );
  expect(degraded?.message).toContain(`kubectl delete deployments -n ${namespace} nat`);
  expect(await versions("nat")).toEqual(before);

  for (const resource of Object.values(COILS)) await play.delete(resource, "nat");
  await play.patchEgress("nat", { replicas: 2 });
  await expect.poll(() => play.conditions("nat"), eventually).toMatchObject({ Degraded: "False AsExpected" });
  expect((await play.child("service", "nat")).spec.selector).toEqual({ "coil.cybozu.com/egress": "nat" });
});
