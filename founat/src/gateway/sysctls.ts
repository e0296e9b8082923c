import { FAMILIES } from "@egress-nat/addresses";
import { FounatError, type FounatErrorCode } from "../error.ts";
import type { LinkState } from "../iproute/state.ts";
import type { SysctlWrites } from "../kernel/step.ts";
import type { GatewayFacts } from "./plan.ts";

const IP_FORWARDING = { ipv4: "net/ipv4/ip_forward", ipv6: "net/ipv6/conf/all/forwarding" } as const;
const RP_FILTER = "net/ipv4/conf/all/rp_filter";
export const SRC_VALID_MARK = "net/ipv4/conf/all/src_valid_mark";

/** Without these a gateway cannot serve. */
export const FORWARDING: Readonly<Record<string, string>> = {
  [IP_FORWARDING.ipv4]: "1",
  [IP_FORWARDING.ipv6]: "1",
  // Inner packets come from addresses that routes lead to the uplink for. Interfaces take the higher of `all` and
  // their own value, so this holds for tunnel links that are made later, too.
  [RP_FILTER]: "2",
  // The way back, which that looks up, has the mark that the way there has: without it there is none.
  [SRC_VALID_MARK]: "1",
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

/** By these a link that is given its hardware address tells neighbours that its addresses are there. */
export function announcing(link: string): Record<string, string> {
  return { [`net/ipv4/conf/${link}/arp_notify`]: "1", [`net/ipv6/conf/${link}/ndisc_notify`]: "1" };
}

/** @param waiting links, by name, on which routers are still to tell something */
export function disbeliefOf(links: readonly LinkState[], waiting: readonly string[]): Record<string, string> {
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

export function sysctlStep(
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

/**
 * @throws FounatError `forwarding-disabled` or `strict-reverse-path-filter` when the namespace is not prepared (as
 *   {@link prepareGatewayNetns} does)
 */
export function checkSysctls(
  { sysctls }: { readonly sysctls: ReadonlyMap<string, string> },
  { uplink, marksWayBack }: GatewayFacts,
): void {
  const lacks = (path: string) => sysctls.get(path) !== FORWARDING[path];
  const families = FAMILIES.filter((family) => uplink.addresses[family] !== undefined);
  const missing = families.map((family) => IP_FORWARDING[family]).filter(lacks);
  if (missing.length > 0) throw notPrepared("forwarding-disabled", missing, "the gateway cannot forward");
  if (lacks(RP_FILTER)) {
    throw notPrepared("strict-reverse-path-filter", [RP_FILTER], "packets of clients may be dropped");
  }
  if (families.includes("ipv4") && marksWayBack && lacks(SRC_VALID_MARK)) {
    throw notPrepared("strict-reverse-path-filter", [SRC_VALID_MARK], "IPv4 packets of clients are dropped");
  }
}

/** @param paths of sysctls that should have one value */
function notPrepared(code: FounatErrorCode, paths: readonly string[], consequence: string): FounatError {
  const names = paths.map((path) => path.replaceAll("/", ".")).join(" and ");
  return new FounatError(code, `sysctl ${names} is not ${FORWARDING[paths[0] ?? ""]}: ${consequence}`, {
    retryable: true,
  });
}
