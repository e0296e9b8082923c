import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { programOf } from "../bed/workload/pod-processes.ts";
import { type Ground, gatewaysOf } from "./ground.ts";
import type { RunningPod } from "./pods.ts";

const PATIENCE_MS = 120_000;

/**
 * Waits until the kernel of each gateway takes packets of the clients, and of nobody else.
 *
 * @returns the gateways that do not know all of them, or know others; none as a rule
 */
export async function gatewaysWithWrongClients(
  ground: Ground,
  clients: readonly RunningPod[],
): Promise<readonly RunningPod[]> {
  const expected = clients
    .flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6])
    .toSorted()
    .join();
  const look = async () => {
    const gateways = await gatewaysOf(ground);
    const known = await Promise.all(gateways.map((gateway) => clientsOf(ground, gateway)));
    return gateways.filter((_, index) => known[index]?.toSorted().join() !== expected);
  };
  const areRight = async () => (await look()).length === 0;
  const options = { what: "gateways to know the clients", timeoutMs: PATIENCE_MS, intervalMs: 2_000 };
  await waitUntil(areRight, options).catch(() => {});
  return look();
}

/** The addresses that a gateway's kernel has as those of clients. */
async function clientsOf({ cluster }: Ground, { node, uid }: RunningPod): Promise<string[]> {
  const machine = cluster.node(node);
  const pid = (await machine.run(programOf(uid))).trim().split(/\s/, 1)[0];
  const listing = await machine.run(`set -e
    for map in clients4 clients6; do
      nsenter --net=/proc/${pid}/ns/net nft list map inet egress_nat_gateway $map
    done`);
  return [...listing.matchAll(/elements = \{([^}]*)\}/g)].flatMap(([, elements = ""]) =>
    elements.split(",").map((element) => element.trim().split(/\s/, 1)[0] ?? ""),
  );
}
