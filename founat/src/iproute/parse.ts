import { canonicalAddress, type Family, formatCidr } from "@egress-nat/addresses";
import { z } from "zod";
import { OF_IPV6 } from "../kernel/ipv6.ts";
import { understood } from "../kernel/output.ts";
import { batch, type Step } from "../kernel/step.ts";
import { parseCidr } from "../routing/cidr.ts";
import {
  type FouPortState,
  type LinkState,
  MAIN_TABLE,
  type NetworkState,
  type RouteState,
  type RuleState,
} from "./state.ts";

const ARGS = ["-N", "-json", "-details", "-batch", "-"];
const LINKS_AND_ROUTES = ["addr show", "route show table all"];

/** The steps whose output {@link parseNetworkState} takes. `ip rule` shows one family at a time. */
export const READ_NETWORK_STATE: readonly Step[] = [
  ...batch("ip", ARGS, [...LINKS_AND_ROUTES, "fou show", "rule show"]),
  { file: "ip", args: ["-6", "-N", "-json", "-details", "rule", "show"], ifSysctl: OF_IPV6 },
];

/** As {@link READ_NETWORK_STATE}, without rules and without FoU, which the kernel may lack. */
export const READ_LINKS_AND_ROUTES: readonly Step[] = batch("ip", ARGS, LINKS_AND_ROUTES);

const GLOBAL_SCOPE = "0";

/** ARPHRD_ETHER (linux/if_arp.h), as `ip -N` spells it. */
const ETHERNET = "[1]";

const LinkAddress = z.object({
  family: z.string(),
  local: z.string().optional(),
  prefixlen: z.number(),
  scope: z.string(),
  dynamic: z.boolean().default(false),
  secondary: z.boolean().optional(),
  temporary: z.boolean().optional(),
  deprecated: z.boolean().optional(),
  dadfailed: z.boolean().optional(),
});
type LinkAddress = z.infer<typeof LinkAddress>;

const Link = z.object({
  ifname: z.string(),
  link_type: z.string().optional(),
  address: z.string().optional(),
  flags: z.array(z.string()).default([]),
  mtu: z.number(),
  group: z.coerce.number(),
  linkinfo: z
    .object({
      info_kind: z.string().optional(),
      info_data: z
        .object({
          local: z.string().optional(),
          remote: z.string().optional(),
          link: z.string().nullish(),
          ttl: z.number().optional(),
          tos: z.string().optional(),
          ip6_tnl_f_use_orig_tclass: z.boolean().optional(),
          ip6_tnl_f_ign_encap_limit: z.boolean().optional(),
          encap: z
            .object({ sport: z.number(), dport: z.number(), csum: z.boolean(), csum6: z.boolean() })
            .optional(),
        })
        .optional(),
    })
    .optional(),
  addr_info: z.array(LinkAddress).default([]),
});

const Route = z.object({
  type: z.string().default("1"),
  dst: z.string(),
  from: z.string().optional(),
  tos: z.string().optional(),
  gateway: z.string().optional(),
  dev: z.string().optional(),
  nhid: z.number().optional(),
  table: z.coerce.number().default(MAIN_TABLE),
  protocol: z.coerce.number(),
  prefsrc: z.string().optional(),
  metric: z.number().default(0),
  metrics: z.array(z.object({ mtu: z.number().optional() })).default([]),
  /** Router preference: every IPv6 route has one, no IPv4 route does. */
  pref: z.string().optional(),
});

const Rule = z.object({
  priority: z.number(),
  protocol: z.coerce.number().default(0),
  iif: z.string().optional(),
  oif: z.string().optional(),
  src: z.string(),
  srclen: z.number().optional(),
  dst: z.string().optional(),
  dstlen: z.number().optional(),
  fwmark: z.string().optional(),
  fwmask: z.string().optional(),
  table: z.coerce.number().optional(),
  /** A number; absent: to look a table up. */
  action: z.string().optional(),
  suppress_prefixlen: z.number().optional(),
});

const FouPort = z.object({
  port: z.number(),
  ipproto: z.number().optional(),
  family: z.string(),
  local: z.string().optional(),
  peer: z.string().optional(),
  peer_port: z.number().optional(),
  dev: z.string().optional(),
});

/**
 * @param outputs of {@link READ_NETWORK_STATE}
 * @throws FounatError `unexpected-output`
 */
export function parseNetworkState(outputs: readonly string[]): NetworkState {
  const [links, routes, fouPorts, rules4] = jsonArrays(outputs[0] ?? "");
  const [rules6] = jsonArrays(outputs[1] ?? "");
  return {
    links: parse(z.array(Link), links).map(linkState),
    routes: parse(z.array(Route), routes).map(routeState),
    rules: [
      ...parse(z.array(Rule), rules4).map((rule) => ruleState("ipv4", rule)),
      ...parse(z.array(Rule), rules6).map((rule) => ruleState("ipv6", rule)),
    ],
    fouPorts: parse(z.array(FouPort), fouPorts).map(fouPortState),
  };
}

function fouPortState({ port, ipproto, family, ...binding }: z.infer<typeof FouPort>): FouPortState {
  return {
    family: family === "inet6" ? "ipv6" : "ipv4",
    port,
    protocol: ipproto,
    binding: Object.entries(binding)
      .map(([word, value]) => `${word} ${value}`)
      .join(" "),
  };
}

// `ip -json -batch` prints one array for each line of the batch that has something to show, or nothing at all.
function jsonArrays(output: string): unknown[] {
  return output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line): unknown => JSON.parse(line));
}

function parse<T>(schema: z.ZodType<T>, value: unknown): T {
  return understood(schema, "ip -json", value ?? []);
}

function linkState(link: z.infer<typeof Link>): LinkState {
  return {
    name: link.ifname,
    up: link.flags.includes("UP"),
    mtu: link.mtu,
    group: link.group,
    ...(link.link_type === ETHERNET && link.address !== undefined && { hardwareAddress: link.address }),
    ...tunnelState(link.linkinfo),
    hasIpv4Address: link.addr_info.some(({ family }) => family === "inet"),
    addresses: link.addr_info.flatMap(addressState),
  };
}

function addressState(address: LinkAddress): LinkState["addresses"][number][] {
  const { local, scope, temporary, deprecated, dadfailed, secondary } = address;
  const isUnfit = temporary || deprecated || dadfailed || secondary;
  if (local === undefined || scope !== GLOBAL_SCOPE || isUnfit) return [];
  const family = address.family === "inet6" ? "ipv6" : "ipv4";
  return [{ family, address: canonical(local), prefixLength: address.prefixlen, lasting: !address.dynamic }];
}

/** What `tos inherit` is to the kernel. */
const INHERIT_TOS = "0x1";

function tunnelState(linkinfo: z.infer<typeof Link>["linkinfo"]): Pick<LinkState, "tunnel"> {
  const { info_kind: kind = "", info_data: data } = linkinfo ?? {};
  if (data?.encap === undefined) return {};
  const isV6 = kind === "ip6tnl";
  return {
    tunnel: {
      kind,
      local: canonical(data.local ?? ""),
      remote: canonical(data.remote ?? ""),
      ...(data.link && { boundTo: data.link }),
      ttl: data.ttl ?? 0,
      inheritsTos: isV6 ? data.ip6_tnl_f_use_orig_tclass === true : data.tos === INHERIT_TOS,
      limitsEncapsulation: isV6 && data.ip6_tnl_f_ign_encap_limit !== true,
      encapSourcePort: data.encap.sport,
      encapDestinationPort: data.encap.dport,
      encapChecksum: isV6 ? data.encap.csum6 : data.encap.csum,
    },
  };
}

// With -N types and scopes are numbers (linux/rtnetlink.h): names of them could be changed in /etc/iproute2.
const ROUTE_TYPES = [
  ...["0", "unicast", "local", "broadcast", "anycast"],
  ...["multicast", "blackhole", "unreachable", "prohibit", "throw"],
];

function routeState(route: z.infer<typeof Route>): RouteState {
  const isV6 = route.pref !== undefined;
  const family = isV6 ? "ipv6" : "ipv4";
  const type = ROUTE_TYPES[Number(route.type)] ?? route.type;
  const mtu = route.metrics.find((metrics) => metrics.mtu !== undefined)?.mtu;
  return {
    family,
    table: route.table,
    type,
    destination: route.dst === "default" ? (isV6 ? "::/0" : "0.0.0.0/0") : canonicalCidr(route.dst),
    ...(route.from !== undefined && { selector: `from ${route.from}` }),
    ...(route.nhid !== undefined && { nexthop: route.nhid }),
    ...(route.tos !== undefined && { selector: `tos ${route.tos}` }),
    ...(route.gateway !== undefined && { via: canonical(route.gateway) }),
    // IPv6 hangs routes that lead nowhere on lo.
    ...(route.dev !== undefined && (type === "unicast" || type === "local") && { device: route.dev }),
    ...(route.prefsrc !== undefined && { source: canonical(route.prefsrc) }),
    ...(mtu !== undefined && { mtu }),
    metric: route.metric,
    protocol: route.protocol,
  };
}

function ruleState(family: Family, rule: z.infer<typeof Rule>): RuleState {
  const prefix = (address: string, length?: number) =>
    canonicalCidr(`${address}${length === undefined ? "" : `/${length}`}`);
  const selector = [
    rule.src !== "all" && `from ${prefix(rule.src, rule.srclen)}`,
    rule.dst !== undefined && `to ${prefix(rule.dst, rule.dstlen)}`,
    rule.fwmark && `fwmark ${rule.fwmark}/${rule.fwmask ?? "0xffffffff"}`,
    rule.iif && `iif ${rule.iif}`,
    rule.oif && `oif ${rule.oif}`,
  ];
  const action = [
    rule.action === undefined ? `lookup ${rule.table ?? "none"}` : (RULE_ACTIONS[rule.action] ?? rule.action),
    rule.suppress_prefixlen !== undefined && `suppress_prefixlength ${rule.suppress_prefixlen}`,
  ];
  return {
    family,
    preference: rule.priority,
    protocol: rule.protocol,
    selector: selector.filter(Boolean).join(" "),
    action: action.filter(Boolean).join(" "),
  };
}

// linux/fib_rules.h
const RULE_ACTIONS: Readonly<Record<string, string>> = { 6: "blackhole" };

/** Of what is no address, for instance `any`: as it is. */
function canonical(text: string): string {
  return canonicalAddress(text) ?? text;
}

function canonicalCidr(cidr: string): string {
  return formatCidr(parseCidr(cidr));
}
