/** Clients that come and go, and other pods that get their addresses and try to pass for them. */

import { setTimeout as sleep } from "node:timers/promises";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { clientOf, oneShotPod } from "../bed/workload/manifests.ts";
import { gatewaysThatMistake } from "./gateway-sets.ts";
import { type Ground, gatewaysOf, NAMESPACE, serverOf } from "./ground.ts";
import { LOAD_COMMAND, LOAD_IMAGE } from "./load-program.ts";
import { podsOf, type RunningPod } from "./pods.ts";
import type { Scene } from "./scene.ts";

/** How many of each there are on each node at a time. */
const ROLES = { visitor: 2, intruder: 1 } as const;
type Role = keyof typeof ROLES;
const ROLE_LABEL = "chaos/role";

const LOOK_MS = 1_000;
/** For the last pods to end. */
const PATIENCE_MS = 300_000;
/** What a client itself sends in this way comes through, or the attack would be none. */
const CONTROL = "control";

/** @param forMs for how long pods come and go, in milliseconds */
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
  await tryIntrusion(ground, commands.intruder(CONTROL));
  await mark();
  await count(scene, await comeAndGo(ground, forMs, commands));
}

/** Arguments of the load program, by the name of the pod that runs it. */
type Commands = Readonly<Record<Role, (name: string) => readonly string[]>>;

/** @returns pods that have come to their ends */
async function comeAndGo(ground: Ground, forMs: number, commands: Commands): Promise<readonly RunningPod[]> {
  const ended = new Map<string, RunningPod>();
  const until = Date.now() + forMs;
  for (let turn = 1; ; turn += 1) {
    const present = await podsOf(ground.kubectl, NAMESPACE, ROLE_LABEL);
    const done = present.filter(({ phase }) => phase === "Succeeded" || phase === "Failed");
    for (const pod of done) ended.set(pod.name, pod);
    await deletePods(ground, done);
    if (Date.now() < until) await createMissing(ground, present, commands, turn);
    else if (present.length === 0) return [...ended.values()];
    if (Date.now() > until + PATIENCE_MS)
      throw new ToolError("timeout", "some pods do not come to their ends");
    await sleep(LOOK_MS);
  }
}

async function createMissing(
  { kubectl, cluster, clients, egress }: Ground,
  present: readonly RunningPod[],
  commands: Commands,
  turn: number,
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

/** Has a client do what intruders do, until it comes through. */
async function tryIntrusion({ cluster, clients }: Ground, args: readonly string[]): Promise<void> {
  const [{ node, containerId }] = clients as [RunningPod];
  await cluster.node(node).startInContainer(containerId, [LOAD_COMMAND, ...args], () => {}).ended;
  await waitUntil(async () => (await serverOf(cluster).log()).includes(CONTROL), {
    ...{ what: "what a client sends past its tunnel to reach the internet", timeoutMs: 30_000 },
  });
}

/** Says what must not be, among how many there were. */
async function count(scene: Scene, ended: readonly RunningPod[]): Promise<void> {
  const { ground } = scene;
  const visitors = ended.filter(({ name }) => name.startsWith("visitor"));
  const former = new Set(visitors.map(({ ipv4 }) => ipv4));
  const successors = ended.filter(({ name, ipv4 }) => name.startsWith("intruder") && former.has(ipv4));
  if (successors.length === 0) throw new ToolError("nothing-measured", "no address was used again");
  const refused = visitors.filter(({ phase }) => phase === "Failed");
  const log = await serverOf(ground.cluster).log();
  const accepted = successors.filter(({ name }) => log.includes(`intruder ${name}\n`));
  const mistaken = await gatewaysThatMistake(ground, ground.clients);
  scene.count("clients refused", refused.length, visitors.length);
  scene.count("pods with a former client's address accepted", accepted.length, successors.length);
  scene.count(
    "gateways that do not know the clients exactly",
    mistaken.length,
    (await gatewaysOf(ground)).length,
  );
}
