import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { programOf } from "../bed/workload/pod-processes.ts";
import { type Ground, gatewaysOf } from "./ground.ts";
import type { RunningPod } from "./pods.ts";

const PATIENCE_MS = 120_000;

/**
 * Waits until the kernel of each gateway knows the clients, and nobody else.
 *
 * @returns the gateways that never do
 */
export async function gatewaysThatMistake(
  ground: Ground,
  clients: readonly RunningPod[],
): Promise<readonly RunningPod[]> {
  const expected = clients.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]).toSorted();
  let mistaken: readonly RunningPod[] = [];
  const know = async () => {
    const gateways = await gatewaysOf(ground);
    const known = await Promise.all(gateways.map((gateway) => clientsOf(ground, gateway)));
    mistaken = gateways.filter((_, index) => known[index]?.toSorted().join() !== expected.join());
    return mistaken.length === 0;
  };
  const options = { what: "gateways to know the clients", timeoutMs: PATIENCE_MS, intervalMs: 2_000 };
  await waitUntil(know, options).catch(() => {});
  return mistaken;
}

/** The addresses that a gateway's kernel has as those of clients. */
async function clientsOf({ cluster }: Ground, { node, uid }: RunningPod): Promise<string[]> {
  const machine = cluster.node(node);
  const pid = (await machine.run(programOf(uid))).trim().split(/\s/, 1)[0];
  const listing = await machine.run(`
    for set in clients4 clients6; do
      nsenter --net=/proc/${pid}/ns/net nft list set inet egress_nat_gateway $set
    done`);
  return [...listing.matchAll(/elements = \{([^}]*)\}/g)].flatMap(([, elements = ""]) =>
    elements.split(",").map((element) => element.trim().split(/\s/, 1)[0] ?? ""),
  );
}
