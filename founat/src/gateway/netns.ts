import { ipBatch } from "../iproute/batch.ts";
import { givenAddresses, settledLines } from "../iproute/learned.ts";
import {
  type LinkState,
  MAIN_TABLE,
  type NetworkState,
  parseNetworkState,
  READ_LINKS_AND_ROUTES,
} from "../iproute/state.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { SysctlWrites } from "../kernel/step.ts";

const FORWARDING: Readonly<Record<string, string>> = {
  "net/ipv4/ip_forward": "1",
  "net/ipv6/conf/all/forwarding": "1",
  // Inner packets come from addresses that routes lead to the uplink for. Interfaces take the higher of `all` and
  // their own value, so this holds for tunnel links that are made later, too.
  "net/ipv4/conf/all/rp_filter": "2",
  // The way back, which that looks up, has the mark that the way there has: without it there is none.
  "net/ipv4/conf/all/src_valid_mark": "1",
};

/**
 * What neighbours may say and gateways do not believe. `all` does not speak for every one of them: interfaces get their
 * own (https://docs.kernel.org/networking/ip-sysctl.html).
 */
const DISBELIEF: Readonly<Record<string, string>> = {
  "ipv4/conf/%/accept_redirects": "0",
  "ipv4/conf/%/secure_redirects": "0",
  "ipv4/conf/%/send_redirects": "0",
  // Announcements. What claims to be an answer is believed, asked for or not: there is no sysctl for that.
  "ipv4/conf/%/drop_gratuitous_arp": "1",
  "ipv6/conf/%/accept_redirects": "0",
  "ipv6/conf/%/drop_unsolicited_na": "1",
  "ipv6/conf/%/accept_ra": "0",
};

/**
 * Sets the sysctls that a gateway needs, and decides what it believes of its network: the addresses and the default route
 * that whoever attached it has given to it, and what routers have advertised only where there is nothing else. Sysctls
 * act in its network namespace only; in a container /proc/sys is read-only, so somebody outside calls this (see
 * {@link KernelOptions.sysctlRoot}), before the gateway's program starts.
 *
 * @param kernel the gateway's network namespace
 * @throws FounatError `kernel-command-failed`, `unexpected-output`
 */
export async function prepareGatewayNetns(kernel: Kernel): Promise<void> {
  await kernel.session(async (session) => {
    const before = await readNetwork(session);
    const waiting = linksThatWait(before);
    const disbelief = disbeliefOf(before.links, waiting);
    const actual = await session.readSysctls([...Object.keys(disbelief), ...Object.keys(FORWARDING)]);
    await session.run(sysctlStep(disbelief, actual));
    // Not before: until then routers go on to tell.
    const network = await readNetwork(session);
    const deaf = network.links.filter(({ name }) => name !== "lo" && !waiting.includes(name));
    await session.run([
      ...ipBatch(["-6"], settledLines(deaf, network)),
      // With forwarding on, the kernel drops the default routes that it has from routers.
      ...sysctlStep(FORWARDING, actual),
    ]);
  });
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

function disbeliefOf(links: readonly LinkState[], waiting: readonly string[]): Record<string, string> {
  const names = ["all", "default", ...links.map(({ name }) => name)];
  return {
    ...Object.fromEntries(
      names.flatMap((name) =>
        Object.entries(DISBELIEF).map(([path, value]) => [`net/${path.replace("%", name)}`, value]),
      ),
    ),
    // 2: with forwarding on, too.
    ...Object.fromEntries(waiting.map((name) => [`net/ipv6/conf/${name}/accept_ra`, "2"])),
  };
}

function sysctlStep(
  wanted: Readonly<Record<string, string>>,
  actual: ReadonlyMap<string, string>,
): SysctlWrites[] {
  const writes = Object.entries(wanted).filter(([path, value]) => {
    const present = actual.get(path);
    // What the kernel does not know needs no value, and who does not listen to routers has no reason to begin.
    const isDeaf = path.endsWith("/accept_ra") && present === "0";
    return present !== undefined && present !== value && !isDeaf;
  });
  return writes.length === 0 ? [] : [{ sysctls: Object.fromEntries(writes) }];
}
