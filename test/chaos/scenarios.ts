import { setTimeout as sleep } from "node:timers/promises";
import { withDependents } from "../bed/cluster/control-plane-commands.ts";
import { tagImages, upgradeChart } from "../bed/workload/chart.ts";
import { gatewaysReady } from "../bed/workload/gateways.ts";
import { egress } from "../bed/workload/manifests.ts";
import { programOf } from "../bed/workload/pod-processes.ts";
import { churn, endChurn } from "./churn.ts";
import type { Expected } from "./expected.ts";
import { gatewaysOf, NAMESPACE, replicasIn } from "./ground.ts";
import {
  drain,
  killGateway,
  killPrograms,
  patchEgress,
  startAgents,
  stopAgents,
  untilGateways,
  untilReplaced,
} from "./harm.ts";
import type { Scenario } from "./scene.ts";

/** As long as clients and gateways take at most to notice what the API does not say. */
const LASTS_MS = 60_000;
const OUTAGE_MS = 120_000;
const UPLINK_OUTAGE_MS = 30_000;
const CHURN_MS = 300_000;
/** After a start a node is about its ordinary work again. */
const SETTLE_MS = 10_000;

const BYSTANDER = { namespace: NAMESPACE, name: "bystander" };

const NOTHING_IS_FELT: Expected = { mayReset: "none", downtimeMs: 0 };
const OTHERS_TAKE_OVER: Expected = { mayReset: "of the gateway", downtimeMs: 1_000, resetMs: 1_500 };

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  rollout: {
    summary: "the Egress's template changes, and all gateways are replaced",
    act: async (scene) => {
      const former = (await gatewaysOf(scene.ground)).map(({ name }) => name);
      await scene.mark();
      await patchEgress(scene, {
        template: { metadata: { annotations: { "chaos/rollout": `${Date.now()}` } } },
      });
      await untilReplaced(scene, former);
    },
    lastsMs: LASTS_MS,
    expected: NOTHING_IS_FELT,
  },
  upgrade: {
    summary: "helm upgrade to other images: all agents, the operator and all gateways are replaced",
    act: async (scene) => {
      const { cluster } = scene.ground;
      const tag = `chaos-${Date.now()}`;
      await tagImages(cluster, tag);
      const former = (await gatewaysOf(scene.ground)).map(({ name }) => name);
      await scene.mark();
      await upgradeChart(cluster, tag);
      await untilReplaced(scene, former);
    },
    lastsMs: LASTS_MS,
    undo: async (scene) => {
      const former = (await gatewaysOf(scene.ground)).map(({ name }) => name);
      await upgradeChart(scene.ground.cluster);
      await untilReplaced(scene, former);
    },
    expected: NOTHING_IS_FELT,
  },
  drain: {
    summary: "kubectl drain of the gateway's node",
    act: async (scene) => {
      await scene.mark();
      await drain(scene);
    },
    lastsMs: LASTS_MS,
    undo: async ({ ground, node }) => void (await ground.kubectl.run(["uncordon", node.name])),
    expected: NOTHING_IS_FELT,
  },
  "scale-in": {
    summary: "from one gateway for each node to one",
    act: async (scene) => {
      await scene.mark();
      await patchEgress(scene, { replicas: 1 });
      await untilGateways(scene, 1, () => true);
    },
    lastsMs: LASTS_MS,
    undo: (scene) => patchEgress(scene, { replicas: replicasIn(scene.ground.cluster) }),
    expected: NOTHING_IS_FELT,
  },
  evict: {
    summary: "the gateway's pod is evicted",
    act: async ({ ground, victim, mark }) => {
      const metadata = { name: victim.name, namespace: ground.egress.namespace };
      const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/eviction`;
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata };
      await mark();
      await ground.kubectl.run(["create", "--raw", path, "-f", "-"], { input: JSON.stringify(eviction) });
    },
    lastsMs: LASTS_MS,
    expected: NOTHING_IS_FELT,
  },
  "restart-program": {
    summary: "kill -9 of the gateway's program",
    act: async ({ victim, node, mark }) => {
      const pids = await node.run(programOf(victim.uid));
      await mark();
      await node.run(`kill -KILL ${pids}`);
    },
    lastsMs: LASTS_MS,
    expected: { mayReset: "none", downtimeMs: 1_000 },
  },
  "restart-bystander": {
    summary:
      "kill -9 of the program of a gateway without clients, on the same node: what the machine itself does to flows",
    act: async ({ ground, node, mark }) => {
      const { kubectl } = ground;
      await kubectl.apply(
        egress(BYSTANDER, {
          destinations: ["192.0.2.0/24"],
          template: { spec: { nodeSelector: { "kubernetes.io/hostname": node.name } } },
        }),
      );
      await gatewaysReady(kubectl, BYSTANDER);
      const [gateway] = await gatewaysOf({ kubectl, egress: BYSTANDER });
      const pids = await node.run(programOf(gateway?.uid ?? ""));
      await sleep(SETTLE_MS);
      await mark();
      await node.run(`kill -KILL ${pids}`);
    },
    lastsMs: LASTS_MS,
    undo: ({ ground }) => ground.kubectl.delete([egress(BYSTANDER, {})]),
    expected: NOTHING_IS_FELT,
  },
  "restart-container": {
    summary: "all processes of the gateway's container are killed",
    act: async ({ victim, node, mark }) => {
      await mark();
      await node.killContainer(victim.containerId);
    },
    lastsMs: LASTS_MS,
    expected: { mayReset: "none", downtimeMs: 1_000 },
  },
  "kill-gateway": {
    summary:
      "the gateway's network is cut off, and all of its processes are killed, with that of its sandbox",
    act: killGateway,
    lastsMs: LASTS_MS,
    expected: OTHERS_TAKE_OVER,
  },
  "agent-down": {
    summary: "no agent runs while the gateway's network is cut off and its processes are killed",
    act: async (scene) => {
      await stopAgents(scene.ground.kubectl);
      await killGateway(scene);
    },
    lastsMs: LASTS_MS,
    undo: ({ ground }) => startAgents(ground.kubectl),
    expected: { mayReset: "of the gateway", mayHang: true },
  },
  "kill-node": {
    summary: "the gateway's node loses its power",
    act: async ({ node, mark }) => {
      await mark();
      await node.kill();
    },
    lastsMs: LASTS_MS,
    undo: ({ ground, node }) => ground.cluster.startNode(node.name),
    expected: OTHERS_TAKE_OVER,
  },
  partition: {
    summary: "the gateway's node loses its network",
    act: async ({ node, mark }) => {
      await mark();
      await node.disconnect();
    },
    lastsMs: LASTS_MS,
    undo: ({ node }) => node.connect(),
    expected: OTHERS_TAKE_OVER,
  },
  "uplink-lost": {
    summary: "the node drops what the gateway sends to the internet, for half a minute",
    act: async ({ ground, victim, node, mark }) => {
      const { wide } = ground.cluster.plan.internet;
      await mark();
      await node.run(`nft 'add table inet chaos
        add chain inet chaos uplink { type filter hook forward priority -200; }
        add rule inet chaos uplink ip saddr ${victim.ipv4} ip daddr ${wide.ipv4} drop
        add rule inet chaos uplink ip6 saddr ${victim.ipv6} ip6 daddr ${wide.ipv6} drop'`);
      await sleep(UPLINK_OUTAGE_MS);
      await node.run("nft delete table inet chaos");
    },
    lastsMs: LASTS_MS,
    expected: { mayReset: "none", downtimeMs: 3_000 },
  },
  "agent-restart": {
    summary: "kill -9 of all node agents",
    act: (scene) => killPrograms(scene, "node-agent"),
    lastsMs: LASTS_MS,
    expected: NOTHING_IS_FELT,
  },
  "operator-kill": {
    summary: "kill -9 of the operator",
    act: (scene) => killPrograms(scene, "operator"),
    lastsMs: LASTS_MS,
    expected: NOTHING_IS_FELT,
  },
  "apiserver-down": {
    summary: "no apiserver for 120 s",
    act: async ({ ground, mark }) => {
      const { controlPlane } = ground.cluster;
      const components = withDependents("apiserver");
      await mark();
      for (const component of components) await controlPlane.kill(component);
      await sleep(OUTAGE_MS);
      for (const component of components) await controlPlane.start(component);
    },
    lastsMs: LASTS_MS,
    expected: NOTHING_IS_FELT,
  },
  "etcd-restart": {
    summary: "kill -9 of etcd, which starts again",
    act: async ({ ground, mark }) => {
      const { controlPlane } = ground.cluster;
      await mark();
      await controlPlane.kill("etcd");
      await controlPlane.start("etcd");
    },
    lastsMs: LASTS_MS,
    expected: NOTHING_IS_FELT,
  },
  "kube-proxy-restart": {
    summary: "kill -9 of kube-proxy on all nodes; it starts again after a second",
    act: async ({ ground, mark }) => {
      await mark();
      await Promise.all(
        ground.cluster.nodes.map((each) => each.run(["pkill", "-KILL", "-f", "^kubernetes kube-proxy"])),
      );
    },
    lastsMs: LASTS_MS,
    expected: NOTHING_IS_FELT,
  },
  churn: {
    summary:
      "for five minutes, and until an address was used again, clients come and go, and other pods get their addresses and send gateways what only clients may",
    act: (scene) => churn(scene, CHURN_MS),
    lastsMs: SETTLE_MS,
    undo: ({ ground }) => endChurn(ground),
    expected: NOTHING_IS_FELT,
  },
};
