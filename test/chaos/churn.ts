/** Clients that come and go, and other pods that get their addresses and try to pass for them. */

import { setTimeout as sleep } from "node:timers/promises";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { clientOf, oneShotPod } from "../bed/workload/manifests.ts";
import { podEvents } from "../bed/workload/pod-events.ts";
import { progress } from "../bench/progress.ts";
import { clientsAmong, haveComeAndGone, successorsOfVisitors } from "./churned-pods.ts";
import { gatewaysWithWrongClients } from "./gateway-sets.ts";
import { type Ground, gatewaysOf, NAMESPACE, serverOf } from "./ground.ts";
import { LOAD_COMMAND, LOAD_IMAGE } from "./load-program.ts";
import { podsOf, type RunningPod } from "./pods.ts";
import type { Scene } from "./scene.ts";

/** How many of each there are on each node at a time. */
const ROLES = { visitor: 2, intruder: 1 } as const;
type Role = keyof typeof ROLES;
const ROLE_LABEL = "chaos/role";

const LOOK_MS = 1_000;
/** For how long pods come and go at most, where no address is used again. */
const AT_MOST_MS = 2_100_000;
/** For the last pods to end. */
const PATIENCE_MS = 300_000;

/** Arguments of the load program, by the name of the pod that runs it. */
type Commands = Readonly<Record<Role, (name: string) => readonly string[]>>;

/** @param forMs for how long pods come and go, in milliseconds; longer until an address was used again */
export async function churn(scene: Scene, forMs: number): Promise<void> {
  const { ground, mark } = scene;
  const { wide } = ground.cluster.plan.internet;
  const gateways = (await gatewaysOf(ground)).flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);
  const targets = [wide.ipv4, wide.ipv6];
  const commands: Commands = {
    visitor: () => ["visit", ...targets],
    intruder: (name) => [
      ...["intrude", `-name=${name}`],
      ...[`-gateways=${gateways.join(",")}`, `-targets=${targets.join(",")}`],
    ],
  };
  // The server's log is of all rounds.
  const round = Date.now().toString(36);
  await tryIntrusion(ground, `control-${round}`, commands);
  await mark();
  await countWrongs(scene, await comeAndGo(ground, forMs, commands, round));
}

/** Takes away pods that have not come to their ends. */
export async function endChurn({ kubectl }: Ground): Promise<void> {
  await kubectl.run(["delete", "pods", "-n", NAMESPACE, "-l", ROLE_LABEL, "--force", "--grace-period=0"]);
}

/** @returns all pods, in the order in which they came to their ends; the last ones may never have */
async function comeAndGo(
  ground: Ground,
  forMs: number,
  commands: Commands,
  round: string,
): Promise<readonly RunningPod[]> {
  const ended = new Map<string, RunningPod>();
  const times = { forMs, atMostMs: AT_MOST_MS };
  const beganAt = Date.now();
  let until: number | undefined;
  for (let turn = 1; ; turn += 1) {
    const present = await podsOf(ground.kubectl, NAMESPACE, ROLE_LABEL);
    const done = present.filter(({ phase }) => phase === "Succeeded" || phase === "Failed");
    for (const pod of done) ended.set(pod.name, pod);
    await deletePods(ground, done);
    const now = Date.now();
    if (haveComeAndGone([...ended.values()], now - beganAt, times)) until ??= now + PATIENCE_MS;
    if (until === undefined) await createMissing(ground, present, commands, `${round}-${turn}`);
    else if (present.length === 0 || now > until) return [...ended.values(), ...present];
    await sleep(LOOK_MS);
  }
}

async function createMissing(
  { kubectl, cluster, clients, egress }: Ground,
  present: readonly RunningPod[],
  commands: Commands,
  turn: string,
): Promise<void> {
  const pods = clients.flatMap(({ node }) =>
    Object.entries(ROLES).flatMap(([role, count]) => {
      const there = present.filter(({ name }) => name.startsWith(`${role}-${node}-`)).length;
      return Array.from({ length: count - there }, (_, index) => {
        const name = `${role}-${node}-${turn}-${index}`;
        const annotations = role === "visitor" ? clientOf(egress) : {};
        return oneShotPod(
          {
            name,
            namespace: NAMESPACE,
            image: LOAD_IMAGE,
            node,
            annotations,
            labels: { [ROLE_LABEL]: role },
          },
          commands[role as Role](name),
        );
      });
    }),
  );
  if (pods.length === 0) return;
  // The next address is the lowest that is free, not one that nobody has had yet.
  const forget = "rm -f /var/lib/cni/networks/pods/last_reserved_ip.*";
  await Promise.all(clients.map(({ node }) => cluster.node(node).run(forget)));
  await kubectl.apply(...pods);
}

async function deletePods({ kubectl }: Ground, pods: readonly RunningPod[]): Promise<void> {
  if (pods.length === 0) return;
  const names = pods.map(({ name }) => name);
  await kubectl.run(["delete", "pods", "-n", NAMESPACE, "--ignore-not-found", "--wait=false", ...names]);
}

/** Has a client do what intruders do, and waits until that has come through: else the attack would be none. */
async function tryIntrusion(
  { cluster, clients }: Ground,
  name: string,
  { intruder }: Commands,
): Promise<void> {
  const [{ node, containerId }] = clients as [RunningPod];
  await cluster.node(node).startInContainer(containerId, [LOAD_COMMAND, ...intruder(name)], () => {}).ended;
  await waitUntil(async () => isHeard(await serverOf(cluster).log(), name), {
    ...{ what: "what a client sends past its tunnel to reach the internet", timeoutMs: 30_000 },
  });
}

function isHeard(log: string, name: string): boolean {
  return log.includes(`intruder ${name}\n`);
}

/** Counts what may not be. */
async function countWrongs({ ground, count }: Scene, pods: readonly RunningPod[]): Promise<void> {
  for (const pod of pods.filter(({ phase }) => phase !== "Succeeded")) progress(await fateOf(ground, pod));
  const clients = clientsAmong(pods);
  const refused = clients.filter(({ phase }) => phase !== "Succeeded");
  const successors = successorsOfVisitors(pods);
  if (successors.length === 0) throw new ToolError("nothing-measured", "no address was used again");
  const log = await serverOf(ground.cluster).log();
  const accepted = successors.filter(({ name }) => isHeard(log, name));
  const gateways = await gatewaysOf(ground);
  const wrong = await gatewaysWithWrongClients(ground, ground.clients);
  count("clients refused", refused.length, clients.length);
  count("pods with a former client's address accepted", accepted.length, successors.length);
  count("gateways that do not know the clients exactly", wrong.length, gateways.length);
}

/** @returns what a pod that has not done what it came for says itself, and what Kubernetes says of it */
async function fateOf({ kubectl }: Ground, { name, node, phase, end }: RunningPod): Promise<string> {
  const events = await podEvents(kubectl, { namespace: NAMESPACE, name });
  return [`${name} on ${node}: ${phase} ${end.reason}`, end.message.trim(), ...events]
    .filter(Boolean)
    .join("\n");
}
