/** A pod's attachment in the virtual machine, from ADD to DEL, carried out by a program of others'. */

import { machine } from "../bed/datapath/machine.ts";
import { type Chain, NODE_PORT } from "./chains.ts";
import type { CniPrograms } from "./programs.ts";
import { parseAnswers, type RuntimeCommand, type Scenario } from "./scenario.ts";

export const RUNTIMES = ["cnitool", "go-cni"] as const;
type Runtime = (typeof RUNTIMES)[number];

export interface Circumstances {
  readonly chain: Chain;
  /** Of the specification. */
  readonly version: string;
  readonly runtime: Runtime;
}

/** What can be seen of it, but for what is drawn by chance. */
export interface Life {
  /** Of ADD. */
  readonly result: unknown;
  /** What the pod's server is heard to say after ADD, and after DEL. */
  readonly heard: { readonly added: string; readonly deleted: string };
  /** Interfaces, rules, routes and files that are there after DEL. */
  readonly left: readonly string[];
}

export const GREETING = "hello from the pod";

const POD = "/run/netns/pod";
const NODE_ADDRESS = "10.99.0.1";

const CAPABILITIES = {
  portMappings: [{ hostPort: NODE_PORT, containerPort: 80, protocol: "tcp" }],
  bandwidth: { ingressRate: 80_000_000, ingressBurst: 800_000, egressRate: 80_000_000, egressBurst: 800_000 },
  "io.kubernetes.cri.pod-annotations": { "example.com/a": "b" },
};
const ARGS = { IgnoreUnknown: "1", K8S_POD_NAMESPACE: "apps", K8S_POD_NAME: "web" };

/** A node, a pod on it with a server, and a neighbour of the node. */
const SETUP = `
  for name in node pod outside; do ip netns add $name; done
  ip link add uplink netns node type veth peer name uplink netns outside
  ip -n node -batch - <<END
    link set lo up
    link set uplink up
    address add ${NODE_ADDRESS}/24 dev uplink
END
  ip -n outside -batch - <<END
    link set uplink up
    address add 10.99.0.2/24 dev uplink
    route add default via ${NODE_ADDRESS}
END
  echo ${GREETING} >/run/greeting
  nsenter --net=${POD} socat TCP4-LISTEN:80,fork OPEN:/run/greeting,rdonly >/dev/null 2>&1 </dev/null &
  echo $! >/run/server`;

const TEAR_DOWN = `
  kill $(cat /run/server)
  for name in pod node outside; do ip netns del $name; done
  rm -rf /run/server /run/greeting /run/host-local /run/cni /var/lib/cni /run/net.d`;

/** A bridge that has lost its last port says so a moment later, as it gets its link-local address a moment after its first. */
const WHAT_IS_THERE = `
  for name in node pod; do ip -n $name -oneline link | sed "s/^[0-9]*: \\([^:@]*\\).*/$name interface \\1/"; done
  nsenter --net=/run/netns/node nft --stateless list ruleset
  ip -n node rule
  ip -n node route show table all type unicast | sed "s/ linkdown//; /^fe80:/d"
  find /run/host-local /run/cni /var/lib/cni /run/egress-nat /var/lib/egress-nat -type f 2>/dev/null || true`;

/** How long a connection may take. A pod that is there answers, however busy the machine is. */
const PATIENCE_S = 20;

/**
 * For how long a pod that is gone is listened to, in times of what its answer took while it was there: an emulated machine
 * may need longer than the shortest time for a connection that does come about.
 */
const TIMES_AS_LONG = 4;
const SHORTEST_PATIENCE_S = 0.3;

/** @throws Error where a plugin fails */
export async function live(programs: CniPrograms, circumstances: Circumstances): Promise<Life> {
  const { chain, version, runtime } = circumstances;
  const configuration = { cniVersion: version, name: "pods", plugins: chain.plugins };
  const execute = { cnitool, "go-cni": goCni }[runtime](programs, configuration);
  await machine.run(SETUP);
  try {
    const result = await execute("ADD");
    const address = chain.forwards ? `${NODE_ADDRESS}:${NODE_PORT}` : `${podAddress(result)}:80`;
    const asked = performance.now();
    const added = await hear(address, PATIENCE_S);
    const answeredS = (performance.now() - asked) / 1000;
    await execute("CHECK");
    await execute("DEL");
    const deleted = await hear(address, Math.max(SHORTEST_PATIENCE_S, TIMES_AS_LONG * answeredS));
    const left = (await machine.run(WHAT_IS_THERE)).trim().split("\n");
    return { result: withoutChance(result), heard: { added, deleted }, left };
  } finally {
    await machine.run(TEAR_DOWN);
  }
}

/** @returns what has cnitool carry out a command, and returns the result of ADD */
function cnitool({ upstream, path }: CniPrograms, configuration: object) {
  const args = Object.entries(ARGS).map((pair) => pair.join("="));
  const env = { CNI_PATH: path, CNI_ARGS: args.join(";"), CAP_ARGS: JSON.stringify(CAPABILITIES) };
  const folder = "/run/net.d";
  const script = `mkdir -p ${folder} && cat >${folder}/10-pods.conflist && NETCONFPATH=${folder} exec "$@"`;
  return async (command: RuntimeCommand): Promise<unknown> => {
    const tool = [`${upstream}/cnitool`, command.toLowerCase(), "pods", POD];
    const input = JSON.stringify(configuration);
    const stdout = await inNode(["sh", "-c", script, "sh", ...tool], { env, input });
    return stdout === "" ? undefined : JSON.parse(stdout);
  };
}

/** As {@link cnitool}. */
function goCni(programs: CniPrograms, configuration: object) {
  return async (command: RuntimeCommand): Promise<unknown> => {
    const step = { command, containerId: "c0ffee", netns: POD, args: ARGS, capabilityArgs: CAPABILITIES };
    const scenario: Scenario = {
      ...{ through: "go-cni", pluginFolders: programs.pluginFolders, configuration },
      steps: [step],
    };
    const [answer] = parseAnswers(await inNode([programs.driver], { input: JSON.stringify(scenario) }));
    if (answer?.error !== undefined) throw new Error(`${command} failed: ${answer.error.message}`);
    return answer?.result;
  };
}

function inNode(
  command: readonly string[],
  options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  return machine.run(["nsenter", "--net=/run/netns/node", "--", ...command], options);
}

/** What the node's neighbour hears there; empty where nobody answers. */
async function hear(address: string, timeoutS: number): Promise<string> {
  const command = ["socat", "-u", `TCP4:${address},connect-timeout=${timeoutS}`, "-"];
  return (await machine.exec(["nsenter", "--net=/run/netns/outside", "--", ...command])).stdout.trim();
}

function podAddress(result: unknown): string {
  const { ips } = result as { readonly ips: readonly { readonly address: string }[] };
  return ips[0]?.address.split("/")[0] ?? "";
}

/** Hardware addresses are drawn by chance, and so are the names of veths. */
function withoutChance(result: unknown): unknown {
  const text = JSON.stringify(result)
    .replaceAll(/([0-9a-f]{2}:){5}[0-9a-f]{2}/g, "MAC")
    .replaceAll(/"(veth)[0-9a-f]{8}"/g, '"$1"');
  return JSON.parse(text);
}
