import { type Family, OF_IPV6 } from "../family.ts";
import { linkName } from "../iproute/links.ts";
import type { ClientConfig } from "./config.ts";
import { type ClientPlan, linkKeys } from "./plan.ts";

/**
 * The sysctls that are not as planned, with the values they should have.
 *
 * @param replacedLinks links that are recreated by then: their sysctls are not what they were
 */
export function sysctlChanges(
  plan: ClientPlan,
  sysctls: ReadonlyMap<string, string>,
  replacedLinks: ReadonlySet<string>,
): Record<string, string> {
  const isReplaced = (path: string) => [...replacedLinks].some((name) => path.includes(`/${name}/`));
  const wanted = Object.entries(plan.sysctls).filter(
    ([path, value]) => sysctls.get(path) !== value || isReplaced(path),
  );
  const present = Object.entries(plan.sysctlsIfPresent).filter(
    ([path, value]) => sysctls.has(path) && sysctls.get(path) !== value,
  );
  return Object.fromEntries([...wanted, ...present]);
}

/** Sysctls that not every kernel has. */
export function sysctlsOfSome(uplink: string): string[] {
  const ofUplink = ["accept_ra", "accept_redirects"].map((name) => `net/ipv6/conf/${uplink}/${name}`);
  return [OF_IPV6, "net/core/txrehash", ...ofUplink];
}

/** Sysctls whose values {@link sysctlChanges} and {@link familiesOf} want to know. */
export function relevantSysctls({ uplink, egresses }: ClientConfig): string[] {
  const interfaces = [uplink, ...linkKeys("ipv4", egresses).map(linkName)];
  return [
    ...sysctlsOfSome(uplink),
    ...interfaces.map((name) => `net/ipv4/conf/${name}/rp_filter`),
    ...["all", uplink].map((name) => `net/ipv4/conf/${name}/accept_redirects`),
  ];
}

/** The families that the kernel knows. */
export function familiesOf(sysctls: ReadonlyMap<string, string>): Family[] {
  return sysctls.has(OF_IPV6) ? ["ipv4", "ipv6"] : ["ipv4"];
}
