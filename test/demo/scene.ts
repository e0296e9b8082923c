import { TOOLBOX_IMAGE } from "@egress-nat/tools/images";
import { gatewaysReady } from "../bed/workload/gateways.ts";
import type { Kubectl } from "../bed/workload/kubectl.ts";
import { clientOf, egress, namespace, probePod, probeProgram } from "../bed/workload/manifests.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import type { Example, Witness } from "./proof.ts";

const NAMESPACE = "demo";

/** The Egress of the demo. */
export const EGRESS = { namespace: "internet-egress", name: "nat" } as const;

interface Role {
  readonly name: string;
  readonly isClient: boolean;
}

/** The pods of the demo: a client on each node, and one that is not a client. */
function roles(nodes: readonly string[]): readonly (Role & { readonly node: string })[] {
  const [first = ""] = nodes;
  return [
    ...nodes.map((node, index) => ({ name: `client-${index + 1}`, node, isClient: true })),
    { name: "bystander", node: first, isClient: false },
  ];
}

/** Applies the Egress and the pods, and waits until they are ready. */
export async function setTheScene(kubectl: Kubectl, nodes: readonly string[]): Promise<void> {
  await kubectl.apply(namespace(EGRESS.namespace), namespace(NAMESPACE));
  await kubectl.apply(
    egress(EGRESS, { replicas: 2, destinations: ["0.0.0.0/0", "::/0"] }),
    await probeProgram(NAMESPACE),
  );
  await gatewaysReady(kubectl, EGRESS);
  await kubectl.apply(
    ...roles(nodes).map(({ name, node, isClient }) =>
      probePod({
        name,
        namespace: NAMESPACE,
        image: TOOLBOX_IMAGE,
        node,
        annotations: isClient ? clientOf(EGRESS) : {},
      }),
    ),
  );
  await Promise.all(roles(nodes).map(({ name }) => ProbePod.ready(kubectl, NAMESPACE, name)));
}

/** Has every pod ask the internet which address it sees. */
export function witnesses(
  kubectl: Kubectl,
  nodes: readonly string[],
  internet: { readonly ipv4: string; readonly ipv6: string },
): Promise<Witness[]> {
  return Promise.all(
    roles(nodes).map(async ({ name, isClient }) => {
      const pod = await ProbePod.ready(kubectl, NAMESPACE, name);
      const [ipv4, ipv6] = await pod.seenBy([internet.ipv4, internet.ipv6]).finally(() => pod.close());
      const example = await ask(kubectl, name, internet.ipv4);
      const nobody = { tcp: "no answer", udp: "no answer" };
      return {
        name,
        isClient,
        node: pod.node,
        ipv4: pod.ipv4,
        ipv6: pod.ipv6,
        seenAs: { ipv4: ipv4 ?? nobody, ipv6: ipv6 ?? nobody },
        example,
      };
    }),
  );
}

/** Asks as a reader would: by a command that can be copied. */
async function ask(kubectl: Kubectl, pod: string, address: string): Promise<Example> {
  const args = ["exec", pod, "-n", NAMESPACE, "--", "curl", "-s", `http://${address}`];
  const answer = await kubectl.run(args).catch(() => "no answer");
  return { command: ["npm run cluster -- kubectl", ...args].join(" "), answer: answer.trim() };
}
