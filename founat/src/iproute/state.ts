import type { Family } from "@egress-nat/addresses";

/** Routing tables by number, as `ip -N` prints them. */
export const MAIN_TABLE = 254;
export const LOCAL_TABLE = 255;

export interface LinkState {
  readonly name: string;
  readonly up: boolean;
  readonly mtu: number;
  readonly group: number;
  /** Of Ethernet and what behaves like it. */
  readonly hardwareAddress?: string;
  /** Of the tunnels: what `ip link add` was given. */
  readonly tunnel?: {
    readonly kind: string;
    readonly local: string;
    /** `any`: whatever the route says. */
    readonly remote: string;
    readonly boundTo?: string;
    readonly ttl: number;
    readonly inheritsTos: boolean;
    readonly limitsEncapsulation: boolean;
    readonly encapSourcePort: number;
    readonly encapDestinationPort: number;
    readonly encapChecksum: boolean;
  };
  /** Of any scope. */
  readonly hasIpv4Address: boolean;
  /** Global, and fit to be a source. */
  readonly addresses: readonly {
    readonly family: Family;
    readonly address: string;
    readonly prefixLength: number;
    /** Whether it has no lifetime: those of router advertisements have one. */
    readonly lasting: boolean;
  }[];
}

export interface RouteState {
  readonly family: Family;
  readonly table: number;
  readonly type: string;
  /** CIDR. */
  readonly destination: string;
  /** What else packets have that the route is for, as `ip` spells it; founat's have none. */
  readonly selector?: string;
  readonly via?: string;
  readonly device?: string;
  /** Of a route by a nexthop object (ip-nexthop(8)): its number. */
  readonly nexthop?: number;
  readonly source?: string;
  /** In bytes, where the route has one of its own. */
  readonly mtu?: number;
  readonly metric: number;
  readonly protocol: number;
}

/** Of the main table. */
export function isDefault({ table, destination }: RouteState): boolean {
  return table === MAIN_TABLE && destination.endsWith("/0");
}

export interface RuleState {
  readonly family: Family;
  readonly preference: number;
  readonly protocol: number;
  /** As {@link Rule.selector} spells it. */
  readonly selector: string;
  /** As {@link Rule.action} spells it. */
  readonly action: string;
}

export interface FouPortState {
  readonly family: Family;
  readonly port: number;
  /** Undefined: of another encapsulation (GUE). */
  readonly protocol: number | undefined;
  /** What else it is bound to, as `ip fou` spells it; founat's are bound to nothing. */
  readonly binding: string;
}

/** What the kernel holds of links, addresses, routes and rules. */
export interface NetworkState {
  readonly links: readonly LinkState[];
  readonly routes: readonly RouteState[];
  readonly rules: readonly RuleState[];
  readonly fouPorts: readonly FouPortState[];
}
