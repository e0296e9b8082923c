import {
  byFamilyAndAddress,
  containsPrefix,
  type Family,
  formatCidr,
  gapsOf,
  mergeRanges,
  type Prefix,
  type Range,
  rangeOf,
} from "@egress-nat/addresses";
import { isNarrow, PRIVATE_RANGES, parseCidr, prefixesOf } from "./cidr.ts";
import { visitNested } from "./nesting.ts";
import { PROBE_PREFIXES } from "./probe-addresses.ts";

/**
 * What no gateway ever carries: this host and link, multicast, probes of the tunnel. IPv6 neighbour discovery lives in
 * there, so the guard must not touch it.
 */
export const NEVER_CARRIED: readonly string[] = [
  "0.0.0.0/8",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "224.0.0.0/4",
  "255.255.255.255/32",
  "fe80::/10",
  "ff00::/8",
  ...Object.values(PROBE_PREFIXES),
];

/**
 * No packet to these belongs on any wire (RFC 4291, section 2.5.5): IPv4 addresses in the spelling of IPv6, which a
 * translator on the way might take for what they stand for. Clients refuse to send any; `::` and `::1` are of this host.
 */
export const NEVER_SENT: readonly string[] = ["::/96", "::ffff:0:0/96"];

/** What translators between IPv6 and IPv4 serve everywhere (NAT64; RFC 6052, section 2.1). */
const TRANSLATED_PREFIX = "64:ff9b::/96";

/** The part of an Egress that says which addresses it carries. */
export interface Carrier {
  readonly destinations: readonly string[];
  readonly excluded: readonly string[];
}

export interface CoverageOptions {
  /** In-cluster ranges, of either family: nobody carries them. */
  readonly clusterRanges: readonly string[];
  /** Specific routes of the main table: they win over wide destinations. */
  readonly mainRoutes?: readonly string[];
}

/**
 * What happens to the addresses of a prefix that are in no longer prefix of the same coverage.
 *
 * - narrow, wide: somebody carries them, by a destination of that kind
 * - blocked: nobody may carry them: in-cluster ranges, this link, multicast
 * - main: the main table decides, before wide destinations are asked: private ranges, its specific routes
 * - free: they go where they would go without any Egress
 */
export type Decision<C extends Carrier> = { readonly prefix: Prefix } & (
  | { readonly kind: "narrow" | "wide"; readonly carrier: C }
  | { readonly kind: "blocked" | "main" | "free" }
);

interface Destination<C> {
  readonly prefix: Prefix;
  readonly carrier: C;
  readonly narrow: boolean;
  readonly excluded: readonly Prefix[];
}

/**
 * Decides, for every address, which carrier takes it: of those that name it and do not exclude it the one with the
 * longest prefix, and of equals the first. Between two neighbouring boundaries (destinations, exclusions, in-cluster
 * and private ranges, specific routes) all addresses are alike, so one decision for each boundary says it all.
 *
 * @param carriers in the order of preference
 * @returns decisions sorted so that a prefix stands before those inside it
 */
export function decide<C extends Carrier>(
  family: Family,
  carriers: readonly C[],
  options: CoverageOptions,
): Decision<C>[] {
  const destinations = carriers.flatMap((carrier): Destination<C>[] => {
    const excluded = prefixesOf(family, carrier.excluded);
    return prefixesOf(family, carrier.destinations).map((prefix) => ({
      prefix,
      carrier,
      narrow: isNarrow(formatCidr(prefix), options.clusterRanges),
      excluded,
    }));
  });
  // Stable: of equally long prefixes the first carrier's stays first.
  destinations.sort((a, b) => b.prefix.length - a.prefix.length);
  const blocked = prefixesOf(family, [...options.clusterRanges, ...NEVER_CARRIED, ...NEVER_SENT]);
  const main = prefixesOf(family, [...PRIVATE_RANGES, ...(options.mainRoutes ?? [])]);
  const boundaries = unique([
    ...destinations.flatMap(({ prefix, excluded }) => [prefix, ...excluded]),
    ...blocked,
    ...main,
  ]);
  const [isBlocked, isMain] = [oneOf(blocked), oneOf(main)];
  // What holds around a boundary holds within: thousands of in-cluster ranges stay cheap.
  return visitNested(boundaries, ({ prefix }, around: Decision<C> | undefined): Decision<C> => {
    if (around?.kind === "blocked" || isBlocked(prefix)) return { prefix, kind: "blocked" };
    // A narrow destination is within a private range, or else within an in-cluster one.
    const mainDecides = around?.kind === "main" || around?.kind === "narrow" || isMain(prefix);
    const destination = destinations.find(
      (candidate) =>
        containsPrefix(candidate.prefix, prefix) &&
        (candidate.narrow || !mainDecides) &&
        !candidate.excluded.some((excluded) => containsPrefix(excluded, prefix)),
    );
    if (destination === undefined) return { prefix, kind: mainDecides ? "main" : "free" };
    return { prefix, kind: destination.narrow ? "narrow" : "wide", carrier: destination.carrier };
  });
}

/** Those who carry anything, each once. */
export function carriersOf<C extends Carrier>(decisions: readonly Decision<C>[]): ReadonlySet<C> {
  return new Set(decisions.flatMap((decision) => ("carrier" in decision ? [decision.carrier] : [])));
}

/** The addresses that a carrier takes for which `which` holds, as disjoint ranges. */
export function carriedRanges<C extends Carrier>(
  decisions: readonly Decision<C>[],
  which: (carrier: C) => boolean = () => true,
): Range[] {
  interface Part {
    readonly decision: Decision<C>;
    readonly within: Prefix[];
  }
  const parts = visitNested(decisions, (decision, around: Part | undefined): Part => {
    around?.within.push(decision.prefix);
    return { decision, within: [] };
  });
  return mergeRanges(
    parts.flatMap(({ decision, within }) =>
      "carrier" in decision && which(decision.carrier)
        ? gapsOf(rangeOf(decision.prefix), within.map(rangeOf))
        : [],
    ),
  );
}

/**
 * The IPv6 addresses by which a translator (NAT64) would reach IPv4 addresses. Of prefixes that a network has chosen for
 * its own translators nobody here knows.
 */
export function translatedRanges(ranges: readonly Range[]): Range[] {
  const { first: base } = parseCidr(TRANSLATED_PREFIX);
  return ranges.map(({ first, last }) => ({ first: base + first, last: base + last }));
}

/** Each once, those around others first. */
function unique(prefixes: readonly Prefix[]): { readonly prefix: Prefix }[] {
  const byKey = new Map(prefixes.map((prefix) => [keyOf(prefix), prefix]));
  return Array.from([...byKey.values()].sort(byFamilyAndAddress), (prefix) => ({ prefix }));
}

function oneOf(prefixes: readonly Prefix[]): (prefix: Prefix) => boolean {
  const keys = new Set(prefixes.map(keyOf));
  return (prefix) => keys.has(keyOf(prefix));
}

/** Of prefixes of one family. */
function keyOf({ first, length }: Prefix): string {
  return `${first}/${length}`;
}
