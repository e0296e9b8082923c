import type { Family } from "@egress-nat/addresses";
import { LOCAL_TABLE, MAIN_TABLE, type NetworkState, type RouteState } from "./state.ts";

/**
 * The routing protocol number on all that founat adds to routing; what has another one is not touched, but for routes in
 * tables that nobody else uses.
 */
export const FOUNAT_PROTOCOL = 30;

/** The least preferred metric there is. */
export const LAST_METRIC = 4294967295;

const DEFAULT_METRICS: Readonly<Record<Family, number>> = { ipv4: 0, ipv6: 1024 };

export interface Route {
  readonly family: Family;
  readonly table: number;
  /** CIDR. */
  readonly destination: string;
  readonly type: "unicast" | "throw" | "unreachable" | "local";
  readonly device?: string;
  /** The source address of what this host sends along the route. */
  readonly source?: string;
  /** Default: the kernel's own. */
  readonly metric?: number;
}

/** `ip route replace`: what is there already is changed in one step, no packet finds it missing. */
export function replaceRouteCommand({ type, destination, device, source, metric, table }: Route): string {
  const words = { dev: device, src: source, metric, table, proto: FOUNAT_PROTOCOL };
  return routeCommand("replace", type, destination, words);
}

/** It names all by which the kernel tells routes apart: somebody else may have put another one beside founat's. */
export function deleteRouteCommand(route: RouteState): string {
  const { type, destination, selector, nexthop, via, device, table, metric, protocol } = route;
  // The kernel takes no other words for a route by a nexthop object.
  const way = nexthop === undefined ? { via, dev: device } : { nhid: nexthop };
  const packets = selector === undefined ? destination : `${destination} ${selector}`;
  return routeCommand("del", type, packets, { ...way, table, metric, proto: protocol });
}

function routeCommand(
  verb: string,
  type: string,
  packets: string,
  words: Readonly<Record<string, string | number | undefined>>,
): string {
  const said = Object.entries(words).flatMap((pair) => (pair[1] === undefined ? [] : pair));
  return ["route", verb, ...(type === "unicast" ? [] : [type]), packets, ...said].join(" ");
}

/** The wanted routes that the kernel lacks or has otherwise, in the order given. */
export function missingRoutes(
  wanted: readonly Route[],
  state: NetworkState,
  replacedLinks: ReadonlySet<string>,
): Route[] {
  const actual = actualRoutes(wanted, state, replacedLinks);
  return wanted.filter((route) => {
    const existing = actual.get(route);
    return existing === undefined || !sameRoute(route, existing);
  });
}

/** The kernel's routes in `tables` that are not wanted (any more): all of them but in the kernel's own tables. */
export function staleRoutes(
  wanted: readonly Route[],
  state: NetworkState,
  tables: readonly number[],
  replacedLinks: ReadonlySet<string>,
): RouteState[] {
  const kept = new Set(actualRoutes(wanted, state, replacedLinks).values());
  return state.routes.filter(
    (route) =>
      tables.includes(route.table) &&
      (route.protocol === FOUNAT_PROTOCOL || !KERNEL_TABLES.includes(route.table)) &&
      !kept.has(route) &&
      !isOn(replacedLinks, route),
  );
}

const KERNEL_TABLES: readonly number[] = [MAIN_TABLE, LOCAL_TABLE];

/** What the kernel has of each wanted route, or in its place: of several the one that `ip route replace` takes. */
function actualRoutes(
  wanted: readonly Route[],
  state: NetworkState,
  replacedLinks: ReadonlySet<string>,
): ReadonlyMap<Route, RouteState> {
  const present = Map.groupBy(
    state.routes.filter((route) => !isOn(replacedLinks, route)),
    routeKey,
  );
  return new Map(
    wanted.flatMap((route) => {
      const rivals = present.get(routeKey(route)) ?? [];
      const actual = rivals.find((rival) => sameRoute(route, rival)) ?? rivals[0];
      return actual === undefined ? [] : [[route, actual] as const];
    }),
  );
}

function isOn(links: ReadonlySet<string>, { device }: RouteState): boolean {
  return device !== undefined && links.has(device);
}

type RouteKey = Pick<RouteState, "family" | "table" | "destination" | "selector"> & Pick<Route, "metric">;

// `ip route replace` changes the first route for each of these.
function routeKey({ family, table, destination, selector, metric }: RouteKey): string {
  return `${family} ${table} ${destination} ${selector} ${metric ?? DEFAULT_METRICS[family]}`;
}

function sameRoute(route: Route, actual: RouteState): boolean {
  return (
    actual.protocol === FOUNAT_PROTOCOL &&
    actual.type === route.type &&
    actual.via === undefined &&
    actual.device === route.device &&
    actual.source === route.source
  );
}
