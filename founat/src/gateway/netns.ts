import { z } from "zod";
import { OF_IPV6 } from "../family.ts";
import { ipBatch } from "../iproute/batch.ts";
import type { Kernel } from "../kernel.ts";
import type { Step } from "../step.ts";

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
  // Answers that nobody asked for.
  "ipv4/conf/%/drop_gratuitous_arp": "1",
  "ipv6/conf/%/accept_redirects": "0",
  "ipv6/conf/%/drop_unsolicited_na": "1",
  "ipv6/conf/%/accept_ra": "0",
};

const Links = z.array(
  z.object({
    ifname: z.string(),
    addr_info: z
      .array(
        z.object({
          family: z.string(),
          scope: z.string().optional(),
          local: z.string().optional(),
          prefixlen: z.number().optional(),
          dynamic: z.boolean().optional(),
        }),
      )
      .default([]),
  }),
);
type Link = z.infer<typeof Links>[number];

const Routes = z.array(
  z.object({
    gateway: z.string().optional(),
    dev: z.string().optional(),
    protocol: z.string().optional(),
    metric: z.number().optional(),
  }),
);
type Route = z.infer<typeof Routes>[number];

const READ: readonly Step[] = [
  { file: "ip", args: ["-json", "addr", "show"] },
  { file: "ip", args: ["-6", "-json", "route", "show", "default"], ifSysctl: OF_IPV6 },
];

/**
 * Sets the sysctls that a gateway needs, and decides what it believes of its network: the addresses and the default route
 * that it has now. A default route that a router has advertised stays, as a static one, and routers are not listened to
 * any more. They act in its network namespace only; in a container /proc/sys is read-only, so somebody outside calls
 * this (see {@link KernelOptions.sysctlRoot}), before the gateway's program starts.
 *
 * @param kernel the gateway's network namespace
 * @throws FounatError `kernel-command-failed`
 */
export async function prepareGatewayNetns(kernel: Kernel): Promise<void> {
  const [addresses = "", defaults = ""] = await kernel.run(READ);
  const links = Links.parse(JSON.parse(addresses));
  const routes = Routes.parse(JSON.parse(defaults || "[]"));
  const wanted = sysctlsOf(links, routes);
  const actual = await kernel.readSysctls(Object.keys(wanted));
  const writes = Object.entries(wanted).filter(([path, value]) => {
    const present = actual.get(path);
    // What the kernel does not know needs no value, and who does not listen to routers has no reason to begin.
    const isDeaf = path.endsWith("/accept_ra") && present === "0";
    return present !== undefined && present !== value && !isDeaf;
  });
  const isForwarding = ([path]: readonly [string, string]) => path in FORWARDING;
  const frozen = frozenLines(links, routes);
  await kernel.run([
    ...sysctlStep(writes.filter((write) => !isForwarding(write))),
    ...ipBatch(["-6"], frozen),
    // With forwarding on, the kernel drops the default routes that it has from routers.
    ...sysctlStep(writes.filter(isForwarding)),
  ]);
}

function sysctlStep(writes: readonly (readonly [string, string])[]): Step[] {
  return writes.length === 0 ? [] : [{ sysctls: Object.fromEntries(writes) }];
}

function sysctlsOf(links: readonly Link[], routes: readonly Route[]): Record<string, string> {
  const names = ["all", "default", ...links.map(({ ifname }) => ifname)];
  const disbelief = names.flatMap((name) =>
    Object.entries(DISBELIEF).map(([path, value]) => [`net/${path.replace("%", name)}`, value] as const),
  );
  // Of a network that has not told its default route yet, routers are all there is to ask (2: with forwarding on, too).
  const untold = routes.length > 0 ? [] : links.filter((link) => ipv6Of(link).length > 0);
  const patience = untold.map(({ ifname }) => [`net/ipv6/conf/${ifname}/accept_ra`, "2"] as const);
  return { ...Object.fromEntries([...disbelief, ...patience]), ...FORWARDING };
}

/** Lines for `ip -6 -batch` by which what routers have told outlives their silence. */
function frozenLines(links: readonly Link[], routes: readonly Route[]): string[] {
  // Of several routers the one that was there first.
  const told = routes.filter(({ protocol }) => protocol === "ra").slice(0, 1);
  return [
    ...told.map(
      ({ gateway, dev, metric }) =>
        `route replace default via ${gateway} dev ${dev} metric ${metric} proto static`,
    ),
    ...links.flatMap((link) =>
      ipv6Of(link)
        .filter(({ dynamic }) => dynamic)
        .map(
          ({ local, prefixlen }) =>
            `address change ${local}/${prefixlen} dev ${link.ifname} valid_lft forever preferred_lft forever`,
        ),
    ),
  ];
}

function ipv6Of({ addr_info }: Link): Link["addr_info"] {
  return addr_info.filter(({ family, scope }) => family === "inet6" && scope === "global");
}
