import type { Family } from "../family.ts";
import type { NetworkState, RouteState } from "./state.ts";

/** The routing protocol number on all that founat adds to routing; what has another one is not touched. */
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
export function replaceRouteCommand(route: Route): string {
  return ["route replace", ...routeWords(route)].join(" ");
}

export function deleteRouteCommand({ type, destination, table, metric }: RouteState): string {
  const words = [...(type === "unicast" ? [] : [type]), destination, "table", table, "metric", metric];
  return ["route del", ...words].join(" ");
}

/** The wanted routes that the kernel lacks or has otherwise, in the order given. */
export function missingRoutes(
  wanted: readonly Route[],
  state: NetworkState,
  replacedLinks: ReadonlySet<string>,
): Route[] {
  const actual = new Map(state.routes.map((route) => [routeKey(route), route]));
  return wanted.filter((route) => {
    const existing = actual.get(routeKey(route));
    const isGone = existing?.device !== undefined && replacedLinks.has(existing.device);
    return existing === undefined || isGone || !sameRoute(route, existing);
  });
}

/** The kernel's routes in `tables` that are founat's and not wanted (any more). */
export function staleRoutes(
  wanted: readonly Route[],
  state: NetworkState,
  tables: readonly number[],
  replacedLinks: ReadonlySet<string>,
): RouteState[] {
  const keys = new Set(wanted.map(routeKey));
  return state.routes.filter(
    (route) =>
      tables.includes(route.table) &&
      route.protocol === FOUNAT_PROTOCOL &&
      !keys.has(routeKey(route)) &&
      !(route.device !== undefined && replacedLinks.has(route.device)),
  );
}

function routeWords({ type, destination, device, source, metric, table }: Route): (string | number)[] {
  return [
    ...(type === "unicast" ? [] : [type]),
    destination,
    ...(device === undefined ? [] : ["dev", device]),
    ...(source === undefined ? [] : ["src", source]),
    ...(metric === undefined ? [] : ["metric", metric]),
    "table",
    table,
    "proto",
    FOUNAT_PROTOCOL,
  ];
}

// The kernel keeps one route for each of these.
function routeKey({ family, table, destination, metric }: Route | RouteState): string {
  return `${family} ${table} ${destination} ${metric ?? DEFAULT_METRICS[family]}`;
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
