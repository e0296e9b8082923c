import { LINK_NAMES } from "../iproute/links.ts";
import type { ClientPlan } from "./plan.ts";

/**
 * The sysctls that are not as planned, with the values they should have.
 *
 * @param replacedLinks links that are made anew by then: theirs are not what they were
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

/** Sysctls whose values {@link sysctlChanges} wants to know. */
export function relevantSysctls(uplink: string): string[] {
  return ["net/core/txrehash", ...[uplink, ...LINK_NAMES].map((name) => `net/ipv4/conf/${name}/rp_filter`)];
}
