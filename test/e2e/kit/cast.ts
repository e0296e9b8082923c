import type { Kubectl, Manifest } from "../../bed/workload/kubectl.ts";
import { clientOf, namespace, nodeShell, probePod, probeProgram } from "../../bed/workload/manifests.ts";
import { nodeShellName } from "../../bed/workload/node-shell.ts";
import { WHOAMI_PORT } from "../../bed/workload/probe-pod.ts";
import { egressIn } from "./egress.ts";
import type { InternetAccess } from "./internet.ts";
import { INTERNET_EGRESS, NAMESPACE, NAMESPACES, OFFICE_EGRESS } from "./names.ts";
import type { World } from "./world.ts";

/** The pods that stay up for all test files: starting one takes seconds. */
export const CAST = {
  /** Client of the internet Egress on the first node. */
  alice: "alice",
  /** Client of the internet Egress on the second node. */
  bob: "bob",
  /** Client of the internet Egress and of the office Egress, on the second node. */
  carol: "carol",
  /** No client; on the first node, with NET_ADMIN and NET_RAW in her own network namespace. */
  mallory: "mallory",
} as const;

/** UDP port of {@link MALLORYS_SERVICE} where mallory listens when a test has her do so. */
export const LISTENING_PORT = 7778;

/** The Service in front of mallory. It is there from the start: proxies take their time to learn of a new one. */
export const MALLORYS_SERVICE = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: CAST.mallory, namespace: NAMESPACE },
  spec: {
    ipFamilyPolicy: "PreferDualStack",
    selector: { app: CAST.mallory },
    ports: [
      { name: "whoami-tcp", protocol: "TCP", port: WHOAMI_PORT },
      { name: "whoami-udp", protocol: "UDP", port: WHOAMI_PORT },
      { name: "listening", protocol: "UDP", port: LISTENING_PORT },
    ],
  },
} as const satisfies Manifest;

/** Long enough for a busy machine without hardware virtualization. */
const PATIENCE_MS = 600_000;

/** Applies the Egresses that all test files use, and the cast, and waits until all of it is ready. */
export async function setTheStage(
  kubectl: Kubectl,
  world: Pick<World, "image" | "nodes" | "internet" | "selection">,
): Promise<void> {
  const { image, nodes, internet } = world;
  const [first = "", second = first] = nodes;
  await kubectl.apply(...NAMESPACES.map(namespace));
  await kubectl.apply(
    egressIn(world, INTERNET_EGRESS, { destinations: ["0.0.0.0/0", "::/0"], replicas: 2 }),
    egressIn(world, OFFICE_EGRESS, {
      // 10.0.0.0/8 covers the cluster's own ranges where they are private.
      destinations: ["10.0.0.0/8", ...narrowDestinations(internet)],
      replicas: 1,
    }),
  );
  await kubectl.apply(
    await probeProgram(NAMESPACE),
    MALLORYS_SERVICE,
    bystander(image, first),
    ...nodes.map(shell),
  );
  // A client that comes before its gateways is turned away, and tried again after a while.
  for (const { namespace, name } of [INTERNET_EGRESS, OFFICE_EGRESS]) {
    await kubectl.wait(["egress", name, "-n", namespace], "condition=Available", PATIENCE_MS);
  }
  await kubectl.apply(...clients(image, first, second));
  await kubectl.wait(["pods", "--all", "-n", NAMESPACE], "condition=Ready", PATIENCE_MS);

  function shell(node: string): Manifest {
    return nodeShell({ name: nodeShellName(node), namespace: NAMESPACE, node, image });
  }
}

/** Removes everything that the tests made, clients before their Egresses, and waits until it is gone. */
export async function clearTheStage(kubectl: Kubectl): Promise<void> {
  await kubectl.delete([namespace(NAMESPACE)]);
  await kubectl.delete([INTERNET_EGRESS.namespace, OFFICE_EGRESS.namespace].map(namespace));
}

function clients(image: string, first: string, second: string): Manifest[] {
  const common = { namespace: NAMESPACE, image };
  return [
    probePod({ ...common, name: CAST.alice, node: first, annotations: clientOf(INTERNET_EGRESS) }),
    probePod({ ...common, name: CAST.bob, node: second, annotations: clientOf(INTERNET_EGRESS) }),
    probePod({
      ...common,
      name: CAST.carol,
      node: second,
      annotations: clientOf(INTERNET_EGRESS, OFFICE_EGRESS),
    }),
  ];
}

function bystander(image: string, node: string): Manifest {
  return probePod({
    ...{ namespace: NAMESPACE, image, node },
    name: CAST.mallory,
    labels: { app: CAST.mallory },
    capabilities: ["NET_ADMIN", "NET_RAW"],
  });
}

function narrowDestinations(internet: InternetAccess | undefined): string[] {
  return internet === undefined ? [] : [`${internet.narrow.ipv4}/24`, `${internet.narrow.ipv6}/64`];
}
