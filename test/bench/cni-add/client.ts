import { TOOLBOX_IMAGE } from "@egress-nat/tools/images";
import { z } from "zod";
import type { ClusterNode } from "../../bed/cluster/node.ts";
import { gatewaysReady } from "../../bed/workload/gateways.ts";
import type { Kubectl } from "../../bed/workload/kubectl.ts";
import { clientOf, type EgressName, egress, namespace, scriptPod } from "../../bed/workload/manifests.ts";
import { withCluster } from "../cluster.ts";
import { type Findings, milliseconds, ratioOfPairs } from "../report.ts";
import { type AddTimes, Chain, type Pod } from "./chain.ts";

const EGRESS: EgressName = { namespace: "bench", name: "bench" };

const LIMIT = { atMost: 4 };

/**
 * The ADD of a client on a node, beside the ADD of upstream's bridge plugin right before it in the same namespace:
 * rules, routes and packet filter are programmed and the slice is written, both families. The wait for gateways is left
 * out by the Egress's own clientStartup, so that nothing has to be subtracted.
 */
export function measureClient(rounds: number): Promise<Findings> {
  return withCluster(({ nodes: [node] }, kubectl) => measure(node as ClusterNode, kubectl, rounds));
}

async function measure(node: ClusterNode, kubectl: Kubectl, rounds: number): Promise<Findings> {
  const pod = await setTheScene(kubectl);
  const chain = await Chain.of(node);
  const times: AddTimes[] = [];
  for (let round = 0; round < rounds; round += 1) times.push(await chain.addAndDelete(pod));
  const bridge = milliseconds(
    "bridge ADD (Go)",
    times.map((pair) => pair.bridge),
  );
  const client = milliseconds(
    "client's ADD, without the wait for gateways",
    times.map((pair) => pair.client),
  );
  return {
    series: [bridge, client],
    targets: [ratioOfPairs("client: ADD / bridge ADD", client, bridge, LIMIT)],
  };
}

const PodObject = z.object({ metadata: z.object({ uid: z.string() }) });

/** An Egress whose clients do not wait, with a gateway, and a client that is an object and nothing more. */
async function setTheScene(kubectl: Kubectl): Promise<Pod> {
  const destinations = ["0.0.0.0/0", "::/0"];
  await kubectl.apply(
    namespace(EGRESS.namespace),
    egress(EGRESS, { replicas: 1, destinations, clientStartup: "Immediate" }),
  );
  await gatewaysReady(kubectl, EGRESS);
  const pod = { namespace: EGRESS.namespace, name: "client" };
  const annotations = clientOf(EGRESS);
  const manifest = scriptPod({ ...pod, annotations, image: TOOLBOX_IMAGE }, "");
  // No scheduler feels responsible for it.
  await kubectl.apply({ ...manifest, spec: { ...(manifest.spec as object), schedulerName: "none" } });
  const { metadata } = await kubectl.get(PodObject, "pod", pod.name, "-n", pod.namespace);
  return { ...pod, uid: metadata.uid, annotations };
}
