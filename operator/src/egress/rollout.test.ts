import type { Egress } from "@egress-nat/crds";
import { expect, test } from "vitest";
import { desiredChildren, type GatewaySettings, type Manifest } from "./children/index.ts";
import type { ObservedChild } from "./observed.ts";
import { isUpgrade, withCause } from "./rollout.ts";
import { anEgress } from "./testing/egress.ts";

const SETTINGS: GatewaySettings = {
  ...{ image: "gateway:1", imagePullPolicy: "Never", clusterRangesNamespace: "egress-nat", logLevel: "info" },
};

function deploymentOf(egress: Egress, image = "gateway:1"): Manifest {
  const { deployment } = desiredChildren(egress, { ...SETTINGS, image });
  if (deployment === undefined) throw new Error("there is no Deployment");
  return withCause(deployment, egress);
}

/** As an operator has applied it. */
function live({ apiVersion, kind, metadata }: Manifest): ObservedChild {
  const { name, namespace, annotations = {} } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, uid: "u", resourceVersion: "1", annotations } };
}

const SEEN = { status: { observedGeneration: 7 } };
const UNSEEN = { status: { observedGeneration: 6 } };
const TEMPLATE = { template: { metadata: { labels: { team: "network" } } } };

test.each<[string, boolean, Egress, string]>([
  ["another image", true, anEgress({}, SEEN), "gateway:2"],
  ["nothing new", false, anEgress({}, SEEN), "gateway:1"],
  ["another number of gateways", false, anEgress({ replicas: 5 }, UNSEEN), "gateway:1"],
  ["another number of gateways, and another image", true, anEgress({ replicas: 5 }, UNSEEN), "gateway:2"],
  ["another image for no gateways", false, anEgress({ replicas: 0 }, SEEN), "gateway:2"],
  ["another template of its author", false, anEgress(TEMPLATE, UNSEEN), "gateway:1"],
  ["another template of its author, and another image", false, anEgress(TEMPLATE, UNSEEN), "gateway:2"],
  ["another template of its author that was tried before", false, anEgress(TEMPLATE, SEEN), "gateway:1"],
  ["another drain time", false, anEgress({ drainTimeoutSeconds: 1 }, UNSEEN), "gateway:2"],
])("%s: that it is the operator's own wish is %s", (_, expected, egress, image) => {
  expect(isUpgrade(egress, live(deploymentOf(anEgress({}))), deploymentOf(egress, image))).toBe(expected);
});

test("what an author says nothing of is the same in every release", () => {
  // Another digest would make the next release a change by the authors of all Egresses, and replace all gateways at once.
  expect(deploymentOf(anEgress({})).metadata.annotations).toMatchObject({
    "coil.cybozu.com/authored-digest": "jo_Smu4jsUMg21L5Q16vAguQ5Sg",
  });
});

test("what an earlier release has made is upgraded by turns, too", () => {
  const { metadata, ...rest } = live(deploymentOf(anEgress({})));
  const earlier = { ...rest, metadata: { ...metadata, annotations: {} } };
  const egress = anEgress({}, SEEN);
  expect(isUpgrade(egress, earlier, deploymentOf(egress, "gateway:2"))).toBe(true);
});
