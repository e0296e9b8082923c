import { ipBatch } from "../iproute/batch.ts";
import { givenAddresses, settledLines } from "../iproute/learned.ts";
import { parseNetworkState, READ_LINKS_AND_ROUTES } from "../iproute/parse.ts";
import { type LinkState, MAIN_TABLE, type NetworkState } from "../iproute/state.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Command } from "../kernel/step.ts";
import { announcing, disbeliefOf, FORWARDING, sysctlStep } from "./sysctls.ts";

/**
 * Sets the sysctls that a gateway needs, and decides what it believes of its network: the addresses and the default route
 * that whoever attached it has given to it, and what routers have advertised only where there is nothing else. Sysctls
 * act in its network namespace only; in a container /proc/sys is read-only, so somebody outside calls this (see
 * {@link KernelOptions.sysctlRoot}), before the gateway's program starts. It tells neighbours that the gateway's addresses are
 * there now, because they may know somebody else by them.
 *
 * @param kernel the gateway's network namespace
 * @throws FounatError `kernel-command-failed`, `unexpected-output`
 */
export async function prepareGatewayNetns(kernel: Kernel): Promise<void> {
  const before = await readNetwork(kernel);
  const waiting = linksThatWait(before);
  const disbelief = disbeliefOf(before.links, waiting);
  const announced = before.links.filter((link) => givenAddresses(link).length > 0);
  const announcement = Object.assign({}, ...announced.map(({ name }) => announcing(name)));
  const sysctls = { ...disbelief, ...FORWARDING, ...announcement };
  const actual = await kernel.readSysctls(Object.keys(sysctls));
  await kernel.run(sysctlStep(disbelief, actual));
  // Not before: until then routers go on to tell.
  const network = await readNetwork(kernel);
  const deaf = network.links.filter(({ name }) => name !== "lo" && !waiting.includes(name));
  await kernel.run([
    ...ipBatch(["-6"], settledLines(deaf, network)),
    // With forwarding on, the kernel drops the default routes that it has from routers.
    ...sysctlStep({ ...FORWARDING, ...announcement }, actual),
    ...announced.flatMap(announcementOf),
  ]);
}

/**
 * Gives the device `$1` the hardware address `$2`, which it has. That has the kernel forget what it knows of neighbours, also
 * for good: who has told it so (a network that answers no questions, such as the AWS VPC's) has no need of announcements.
 */
const ANNOUNCE = '[ -n "$(ip neigh show dev "$1" nud permanent)" ] || ip link set dev "$1" address "$2"';

/**
 * A neighbour that has known another pod by an address sends there for up to eight seconds before it asks again (RFC 4861
 * section 7.3.3, which Linux follows for ARP as well). Not every kind of link may be given an address.
 */
function announcementOf({ name, hardwareAddress }: LinkState): Command[] {
  if (hardwareAddress === undefined) return [];
  return [{ file: "sh", args: ["-c", ANNOUNCE, "sh", name, hardwareAddress], mayFail: true }];
}

async function readNetwork(kernel: Kernel): Promise<NetworkState> {
  return parseNetworkState(await kernel.read(READ_LINKS_AND_ROUTES));
}

/** The links, by name, of a network that has not told its IPv6 default route yet: routers are all there is to ask. */
function linksThatWait({ links, routes }: NetworkState): string[] {
  if (routes.some(({ table, destination }) => table === MAIN_TABLE && destination === "::/0")) return [];
  return links
    .filter((link) => givenAddresses(link).some(({ family }) => family === "ipv6"))
    .map(({ name }) => name);
}
