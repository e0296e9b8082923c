import type { Family } from "@egress-nat/addresses";
import { linkName } from "../iproute/links.ts";
import { OF_IPV6 } from "../kernel/ipv6.ts";
import type { ClientConfig } from "./config.ts";
import { tunnelsOf } from "./tunnels.ts";

/** A sysctl and the value that it should have. */
export interface Sysctl {
  /** Below /proc/sys. */
  readonly path: string;
  readonly value: string;
  /** Not every kernel has it. */
  readonly optional?: boolean;
}

/**
 * All sysctls of a client.
 *
 * @param links names of the tunnel links of IPv4
 * @param listens whether it believes what routers advertise
 */
export function clientSysctls(uplink: string, links: readonly string[], listens = false): readonly Sysctl[] {
  return [
    // Inbound flows arrive on the uplink from addresses that routes lead to the tunnel for, and routers' ICMP errors
    // in the tunnel from addresses that none does. Strict checks of the reverse path would drop them.
    ...[uplink, ...links].map((name) => ({ path: `net/ipv4/conf/${name}/rp_filter`, value: "2" })),
    // Either of them is enough for the kernel to believe a redirect.
    ...["all", uplink].map((name) => ({ path: `net/ipv4/conf/${name}/accept_redirects`, value: "0" })),
    // After a retransmission timeout TCP changes a flow's hash, and with it the outer source port: in mid-flow the
    // node would see a new flow, and may give it to another gateway.
    { path: "net/core/txrehash", value: "0", optional: true },
    // What the pod's network is, the runtime has said; anybody on the link can say that he is a router.
    ...(listens ? [] : [{ path: `net/ipv6/conf/${uplink}/accept_ra`, value: "0", optional: true }]),
    { path: `net/ipv6/conf/${uplink}/accept_redirects`, value: "0", optional: true },
  ];
}

/**
 * The sysctls that are not as planned, with the values they should have.
 *
 * @param replacedLinks links that are recreated by then: their sysctls are not what they were
 */
export function sysctlChanges(
  wanted: readonly Sysctl[],
  actual: ReadonlyMap<string, string>,
  replacedLinks: ReadonlySet<string>,
): Record<string, string> {
  const isReplaced = (path: string) => [...replacedLinks].some((name) => path.includes(`/${name}/`));
  const changes = wanted.filter(({ path, value, optional }) =>
    optional
      ? actual.has(path) && actual.get(path) !== value
      : actual.get(path) !== value || isReplaced(path),
  );
  return Object.fromEntries(changes.map(({ path, value }) => [path, value]));
}

/** Those that say what kernel it is, and that not every kernel has. */
export function sysctlsOfSome(uplink: string): string[] {
  return [OF_IPV6, ...paths(clientSysctls(uplink, []), true)];
}

/** Sysctls whose values {@link sysctlChanges} and {@link familiesOf} want to know. */
export function relevantSysctls({ uplink, egresses }: Pick<ClientConfig, "uplink" | "egresses">): string[] {
  const links = tunnelsOf("ipv4", egresses).map(linkName);
  return [...sysctlsOfSome(uplink), ...paths(clientSysctls(uplink, links), false)];
}

function paths(sysctls: readonly Sysctl[], optional: boolean): string[] {
  return sysctls.filter((sysctl) => (sysctl.optional ?? false) === optional).map(({ path }) => path);
}

/** The families that the kernel knows. */
export function familiesOf(sysctls: ReadonlyMap<string, string>): Family[] {
  return sysctls.has(OF_IPV6) ? ["ipv4", "ipv6"] : ["ipv4"];
}
