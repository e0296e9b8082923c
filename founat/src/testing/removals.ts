import type { GatewayBackend } from "../gateway/config.ts";
import type { TestedBackend } from "./backends.ts";
import { inside } from "./topology.ts";

const REMOVALS: Readonly<Record<GatewayBackend, (variant: string) => Promise<string[]>>> = {
  nftables: nftRemovals,
  iptables: iptablesRemovals,
};

/** What a packet filter holds, each thing as the shell command that takes it away, of one family each. */
export function filterRemovals({ backend, variant }: TestedBackend): Promise<string[]> {
  return REMOVALS[backend](variant);
}

const TABLE = "inet egress_nat_gateway";

async function nftRemovals(): Promise<string[]> {
  const listing = JSON.parse(await inside("gateway", "nft -j list ruleset")) as {
    nftables: {
      chain?: { name: string; hook?: string };
      set?: { name: string };
      map?: { name: string };
      flowtable?: { name: string };
      rule?: { chain: string; comment: string };
    }[];
  };
  const rules = listing.nftables.flatMap(({ rule }) => (rule ? [rule] : []));
  return [
    ...listing.nftables.flatMap(({ chain, set, map, flowtable }) => [
      ...(chain ? [`nft flush chain ${TABLE} ${chain.name}`] : []),
      ...(chain?.hook ? [`nft delete chain ${TABLE} ${chain.name}`] : []),
      ...(set ? [`nft flush set ${TABLE} ${set.name}`] : []),
      ...(map ? [`nft flush map ${TABLE} ${map.name}`] : []),
      ...(flowtable
        ? [`nft 'flush chain ${TABLE} to_destination; delete flowtable ${TABLE} ${flowtable.name}'`]
        : []),
      ...(chain ? ruleRemovals(chain.name, rules) : []),
    ]),
    // What is added belongs to nobody.
    `nft 'add element ${TABLE} clients4 { 10.1.0.99 : 9 }; add element ${TABLE} clients6 { fd00:1::99 comment "x" : 9 }'`,
    `nft 'add element ${TABLE} clients4 { * : 9 }'`,
    `nft 'add element ${TABLE} destinations4 { 10.9.0.0/16 comment "x" }'`,
    `nft 'add element ${TABLE} inner4 { 10.1.0.99 . 9 }; add element ${TABLE} inner6 { fd00:1::99 . 9 comment "x" }'`,
    `nft delete table ${TABLE}`,
    "nft flush ruleset",
  ];
}

/**
 * The rules of a chain, those of one purpose at once, which its comment names: they are of both families. Each repair
 * gives them other handles. To take the only ones is to flush the chain.
 */
function ruleRemovals(
  chain: string,
  rules: readonly { readonly chain: string; readonly comment: string }[],
): string[] {
  const ofChain = rules.filter((rule) => rule.chain === chain);
  const purposes = new Set(ofChain.map(({ comment }) => comment.replace(/ ~.*/, "").replaceAll("'", ".")));
  if (purposes.size < 2) return [];
  return Array.from(
    purposes,
    (purpose) =>
      `nft -a list chain ${TABLE} ${chain} | sed -n '/ "${purpose} ~/s/.* #/delete rule ${TABLE} ${chain}/p' | nft -f -`,
  );
}

/** Chains, what leads to them, each of their rules, sets, filters. */
async function iptablesRemovals(variant: string): Promise<string[]> {
  const both = (table: string, lines: string) =>
    ["iptables", "ip6tables"]
      .map((program) => `printf '*${table}\\n${lines}\\nCOMMIT\\n' | ${program}-${variant}-restore --noflush`)
      // One chain is of IPv6 alone.
      .join(" || true; ");
  const commands: string[] = [];
  let table = "";
  for (const line of (await inside("gateway", `ip6tables-${variant}-save`)).split("\n")) {
    if (line.startsWith("*")) table = line.slice(1);
    const [, chain] = /^:(EN-\S+) /.exec(line) ?? [];
    if (chain !== undefined) commands.push(both(table, `-F ${chain}`));
    const [, hook] = /^-A ([A-Z]+) .*-j EN-/.exec(line) ?? [];
    if (hook !== undefined) commands.push(both(table, `-F ${hook}`), both(table, `-I ${hook} 1 -j ACCEPT`));
  }
  const perLink = (rest: string) => `tc ${rest.replace("LINK", "fou4")}; tc ${rest.replace("LINK", "fou6")}`;
  return [
    ...new Set(commands),
    ...["clients", "inner", "allowed"].map((set) => `ipset flush en-${set}4; ipset flush en-${set}6`),
    ...[1, 2].map((priority) => perLink(`filter del dev LINK ingress pref ${priority}`)),
    perLink("qdisc del dev LINK clsact"),
    "tc filter del dev eth0 egress pref 1; tc filter del dev eth0 egress pref 2",
    "tc qdisc del dev eth0 clsact",
    // What is added belongs to nobody.
    "ipset add en-clients4 10.1.0.99 skbmark 0x9; ipset add en-clients6 fd00:1::99 skbmark 0x9",
    "ipset add en-allowed4 10.9.0.0/16",
    "ipset add en-inner4 10.1.0.99,9; ipset add en-inner6 fd00:1::99,9",
    "ipset create en-stranger hash:ip",
    "tc filter add dev fou4 ingress protocol all pref 7 basic action ok",
  ];
}
