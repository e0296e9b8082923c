import type { Addresses } from "@egress-nat/addresses";
import type { Routing } from "../iproute/batch.ts";
import { isLinkName, linkName, type TunnelLink } from "../iproute/links.ts";
import { FOUNAT_PROTOCOL, LAST_METRIC, type Route } from "../iproute/routes.ts";
import type { NetworkState } from "../iproute/state.ts";
import { fwmark, markOf, marksOf, type Pin } from "./mark.ts";

const PREFERENCE = 1860;
/** The table of a pin is this and its number. */
const FIRST_TABLE = 118000;
const MAX_PINS = 254;

/** Of routes that lead the flows of one link each. */
export const PIN_TABLES: readonly number[] = Array.from({ length: MAX_PINS }, (_, index) =>
  tableOf(index + 1),
);

/** Numbers of gateways, by what {@link pinKey} makes of the names of their links. */
export type PinNumbers = ReadonlyMap<string, number>;

/** The gateway and the family of a link, whatever its source port is. */
export function pinKey(link: string): string {
  return link.replace(/^(fou[46])a_/, "$1_");
}

/** Those that the kernel has: it is the record of them, because flows outlive programs. */
export function pinNumbers({ links, rules, routes }: NetworkState): PinNumbers {
  const numbers = new Set(
    rules.filter(isOfPin).map(({ action }) => Number(action.slice("lookup ".length)) - FIRST_TABLE),
  );
  const known = new Map<string, number>();
  for (const { table, type, device } of routes) {
    if (type === "unicast" && device !== undefined && numbers.delete(table - FIRST_TABLE)) {
      known.set(pinKey(device), table - FIRST_TABLE);
    }
  }
  // A link that somebody has taken down has lost its routes: it had what its name asks for, unless another link has that.
  for (const { name } of links) {
    const preferred = preferredNumber(name, MAX_PINS);
    if (isLinkName(name) && !known.has(pinKey(name)) && numbers.delete(preferred)) {
      known.set(pinKey(name), preferred);
    }
  }
  return known;
}

/** Marks that the kernel leads to links of nobody any more. */
export function stalePins(pins: readonly Pin[], { rules }: NetworkState): Pick<Pin, "mark">[] {
  const mask = pins[0]?.mark.mask;
  return rules.filter(isOfPin).flatMap(({ family, selector }) => {
    const [, value, of] = /^fwmark (\S+)\/(\S+)$/.exec(selector) ?? [];
    const mark = { value: Number(value), mask: Number(of) };
    const isWanted = pins.some((pin) => pin.family === family && pin.mark.value === mark.value);
    return isWanted && mark.mask === mask ? [] : [{ mark }];
  });
}

function isOfPin({ preference, protocol }: NetworkState["rules"][number]): boolean {
  return preference === PREFERENCE && protocol === FOUNAT_PROTOCOL;
}

/**
 * Gives links numbers. One that has none gets what its name asks for, so that it is the same again where the kernel
 * has lost it, or else the next that is free. That of a link which is about to go is not free yet: flows may have it.
 *
 * @returns one for each link that leads to a gateway, but for those that have to wait until others have gone
 */
export function pinsOf(links: readonly TunnelLink[], known: PinNumbers, mask: number): Pin[] {
  const available = Math.min(marksOf(mask), MAX_PINS);
  const holders = new Map(Array.from(known, ([key, number]) => [number, key]));
  const taken = new Set<number>();
  const pinned = links.filter(({ remote }) => remote !== undefined);
  return pinned.flatMap((each) => {
    const link = linkName(each);
    const own = known.get(pinKey(link)) ?? 0;
    const isOwn = own <= available && holders.get(own) === pinKey(link) && !taken.has(own);
    const number = isOwn ? own : freeNumber(link, available, holders);
    if (number === undefined) return [];
    holders.set(number, pinKey(link));
    taken.add(number);
    return [{ family: each.family, link, mark: markOf(number, mask), number }];
  });
}

/** The number that a link of this name asks for. */
function preferredNumber(link: string, available: number): number {
  return (Number.parseInt(link.slice(-8), 16) % available) + 1;
}

/** It, or the next that nobody has. */
function freeNumber(
  link: string,
  available: number,
  holders: ReadonlyMap<number, string>,
): number | undefined {
  let number = preferredNumber(link, available);
  for (let tried = 0; tried < available; tried += 1) {
    if (!holders.has(number)) return number;
    number = (number % available) + 1;
  }
  return undefined;
}

/**
 * What leads marks to their links, before all that leads elsewhere.
 *
 * @param addresses the client's own
 */
export function pinRouting(pins: readonly Pin[], addresses: Addresses): Routing {
  return {
    bypassRules: [],
    routes: pins.flatMap((pin) => pinRoutes(pin, addresses[pin.family])),
    rules: pins.map(({ family, mark, number }) => ({
      family,
      preference: PREFERENCE,
      selector: fwmark(mark),
      action: `lookup ${tableOf(number)}`,
    })),
  };
}

function pinRoutes({ family, link, number }: Pin, source: string | undefined): Route[] {
  const way = { family, table: tableOf(number), destination: family === "ipv4" ? "0.0.0.0/0" : "::/0" };
  return [
    // For when the link is gone: no other route may take over.
    { ...way, type: "unreachable", metric: LAST_METRIC },
    { ...way, type: "unicast", device: link, ...(source !== undefined && { source }) },
  ];
}

function tableOf(number: number): number {
  return FIRST_TABLE + number;
}
