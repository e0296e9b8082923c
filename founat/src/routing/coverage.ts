import type { Family } from "../family.ts";
import {
  byFamilyAndAddress,
  containsPrefix,
  formatCidr,
  isNarrow,
  lastAddress,
  PRIVATE_RANGES,
  type Prefix,
  parseCidr,
  prefixesOf,
  type Range,
} from "./cidr.ts";
import { PROBE_PREFIXES } from "./probe-addresses.ts";
import { mergeRanges } from "./ranges.ts";

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

/** What happens to the addresses of a prefix that are in no longer prefix of the same coverage. */
export interface Decision<C extends Carrier> {
  readonly prefix: Prefix;
  /** Who carries them; absent: they go where they would go without any Egress. */
  readonly carrier?: C;
  /** Whether nobody may carry them: in-cluster ranges, this link, multicast. */
  readonly blocked: boolean;
  /** Whether the destination that decides is narrow. */
  readonly narrow: boolean;
  /** Whether another rule (private ranges, main's specific routes) decides before wide destinations are asked. */
  readonly decidedBefore: boolean;
}

interface Boundary {
  readonly prefix: Prefix;
  readonly blocked: boolean;
  readonly decidedBefore: boolean;
}

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
  const before = prefixesOf(family, [...PRIVATE_RANGES, ...(options.mainRoutes ?? [])]);
  const boundaries = unique([
    ...destinations.flatMap(({ prefix, excluded }) => [prefix, ...excluded]),
    ...blocked,
    ...before,
  ]);
  return withAncestors(boundaries, blocked, before).map(({ prefix, blocked, decidedBefore }) => {
    const destination = blocked
      ? undefined
      : destinations.find(
          (candidate) =>
            containsPrefix(candidate.prefix, prefix) &&
            (candidate.narrow || !decidedBefore) &&
            !candidate.excluded.some((excluded) => containsPrefix(excluded, prefix)),
        );
    return {
      prefix,
      blocked: blocked,
      narrow: destination?.narrow ?? false,
      decidedBefore,
      ...(destination && { carrier: destination.carrier }),
    };
  });
}

/** The addresses that a carrier takes for which `which` holds, as disjoint ranges. */
export function carriedRanges<C extends Carrier>(
  decisions: readonly Decision<C>[],
  which: (carrier: C) => boolean = () => true,
): Range[] {
  const ranges: Range[] = [];
  const open: Decision<C>[] = [];
  let next = 0n;
  const closeUntil = (address: bigint) => {
    for (let top = open.at(-1); top !== undefined && lastAddress(top.prefix) < address; top = open.at(-1)) {
      emit(top, lastAddress(top.prefix));
      open.pop();
    }
  };
  const emit = ({ carrier }: Decision<C>, last: bigint) => {
    if (carrier !== undefined && which(carrier) && next <= last) ranges.push({ first: next, last });
    next = last + 1n;
  };
  for (const decision of decisions) {
    closeUntil(decision.prefix.first);
    const parent = open.at(-1);
    if (parent !== undefined && next < decision.prefix.first) emit(parent, decision.prefix.first - 1n);
    next = decision.prefix.first;
    open.push(decision);
  }
  closeUntil(1n << 128n);
  return mergeRanges(ranges);
}

/**
 * The IPv6 addresses by which a translator (NAT64) would reach IPv4 addresses. Of prefixes that a network has chosen for
 * its own translators nobody here knows.
 */
export function translatedRanges(ranges: readonly Range[]): Range[] {
  const { first: base } = parseCidr(TRANSLATED_PREFIX);
  return ranges.map(({ first, last }) => ({ first: base + first, last: base + last }));
}

/** Of prefixes of one family. */
function keyOf({ first, length }: Prefix): string {
  return `${first}/${length}`;
}

function unique(prefixes: readonly Prefix[]): Prefix[] {
  return [...new Map(prefixes.map((prefix) => [keyOf(prefix), prefix])).values()].sort(byFamilyAndAddress);
}

// In this order the enclosing prefixes of each one are a stack: thousands of in-cluster ranges stay cheap.
function withAncestors(
  boundaries: readonly Prefix[],
  blocked: readonly Prefix[],
  before: readonly Prefix[],
): Boundary[] {
  const blockedKeys = new Set(blocked.map(keyOf));
  const beforeKeys = new Set(before.map(keyOf));
  const open: Boundary[] = [];
  return boundaries.map((prefix) => {
    while (open.length > 0 && !containsPrefix((open.at(-1) as Boundary).prefix, prefix)) open.pop();
    const parent = open.at(-1);
    const key = keyOf(prefix);
    const boundary = {
      prefix,
      blocked: (parent?.blocked ?? false) || blockedKeys.has(key),
      decidedBefore: (parent?.decidedBefore ?? false) || beforeKeys.has(key),
    };
    open.push(boundary);
    return boundary;
  });
}
