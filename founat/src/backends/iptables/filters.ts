import { FAMILIES } from "@egress-nat/addresses";
import type { Difference } from "../../difference.ts";
import type { GatewayPolicy } from "../../gateway/policy.ts";
import type { Command } from "../../kernel/step.ts";
import { setName } from "./sets.ts";

/** Device -> the filters (tc-basic(8)) of its qdisc for both ways, a line for each, as tc prints them. */
export type Filters = ReadonlyMap<string, string>;

interface Filter {
  readonly way: "ingress" | "egress";
  readonly priority: number;
  readonly protocol: string;
  readonly match: string;
  readonly action: string;
}

const PROTOCOLS = { ipv4: "ip", ipv6: "ipv6" } as const;
const PRINTED_DROP = "gact action drop random type none pass val 0";

/** Where iptables has no hook: before conntrack puts fragments together, and after all NAT. */
function gatewayFilters({ uplink, tunnels, marks }: GatewayPolicy): ReadonlyMap<string, readonly Filter[]> {
  const onLink = (protocol: string, match: string): Filter[] => [
    // What has not the client's own source: a client speaks for another. It is made first.
    { way: "ingress", priority: 2, protocol: "all", match: "", action: "drop" },
    { way: "ingress", priority: 1, protocol, match, action: `skbedit mark ${marks.passed} pass` },
  ];
  // Nothing leaves with a client's address.
  const onUplink = FAMILIES.map((family, index): Filter => {
    const match = `ipset(${setName("clients", family)} src)`;
    return { way: "egress", priority: index + 1, protocol: PROTOCOLS[family], match, action: "drop" };
  });
  return new Map([
    [uplink, onUplink],
    ...tunnels.map(({ name, family }): [string, Filter[]] => [
      name,
      onLink(PROTOCOLS[family], `ipset(${setName("inner", family)} src,src)`),
    ]),
  ]);
}

function spell({ way, priority, protocol, match, action }: Filter) {
  const where = `${way} protocol ${protocol} pref ${priority}`;
  return {
    text: `${where} ${rest({ match, action })}`,
    printed: `${where}${match && ` ${match}`} action order 1: ${action === "drop" ? PRINTED_DROP : action}`,
  };
}

function rest({ match, action }: Pick<Filter, "match" | "action">): string {
  return `basic${match && ` match ${match}`} action ${action}`;
}

export const READ_FILTERS: Command = {
  file: "sh",
  args: [
    "-c",
    `tc qdisc show | sed -n 's/^qdisc clsact .* dev \\([^ ]*\\) .*/\\1/p' | while read -r dev; do
       for way in ingress egress; do echo "on $dev $way" && tc filter show dev "$dev" $way || exit 1; done
     done`,
  ],
};

export function parseFilters(output: string): Filters {
  const devices = new Map<string, string>();
  for (const [, device = "", way, text = ""] of output.matchAll(/^on (\S+) (\S+)\n((?:(?!on ).*\n)*)/gm)) {
    // First the classifier, then each filter of it; without the number of an action among all, and how many use it.
    const filters = text.split(/^filter /m).filter((filter) => filter.includes(" handle "));
    const lines = filters.map((filter) =>
      `${way} ${filter.replaceAll(/ basic chain 0 handle \S+|\bindex \d+ ref \d+ bind \d+/g, "")}`
        .replaceAll(/\s+/g, " ")
        .trim(),
    );
    devices.set(device, inOrder([...(devices.get(device)?.split("\n") ?? []), ...lines]));
  }
  return devices;
}

function inOrder(lines: readonly string[]): string {
  return lines.filter(Boolean).toSorted().join("\n");
}

/** @param replaced links whose filters the kernel has dropped by then */
export function filterChanges(policy: GatewayPolicy, actual: Filters, replaced: ReadonlySet<string>) {
  const differences: Difference[] = [];
  const lines: string[] = [];
  for (const [device, filters] of gatewayFilters(policy)) {
    const spelled = filters.map(spell);
    const there = replaced.has(device) ? undefined : actual.get(device);
    if (there === inOrder(spelled.map(({ printed }) => printed))) continue;
    const text = `tc filter of ${device} ${there ? "is another one" : "is missing"}`;
    differences.push({ object: "filter", text });
    if (there !== undefined) lines.push(`qdisc del dev ${device} clsact`);
    lines.push(
      `qdisc add dev ${device} clsact`,
      ...spelled.map((of) => `filter add dev ${device} ${of.text}`),
    );
  }
  return { differences, lines };
}

export function filterRemoval(actual: Filters): string[] {
  const own = [...actual].filter(([, text]) => text.includes("ipset(en-"));
  return own.map(([device]) => `qdisc del dev ${device} clsact`);
}

/** Whether the kernel takes such filters: in a chain of lo to which nothing goes, for as long as that takes. */
export function trialOf(policy: GatewayPolicy): Command {
  const script = `tc qdisc del dev lo clsact 2>/dev/null
    tc qdisc add dev lo clsact && tc -batch - && tc qdisc del dev lo clsact`;
  const lines = [...gatewayFilters(policy).values()]
    .flat()
    .map(
      (filter, index) => `filter add dev lo ingress chain 1 protocol all pref ${index + 1} ${rest(filter)}\n`,
    );
  return { file: "sh", args: ["-c", script], input: lines.join("") };
}

export function tcStep(lines: readonly string[]): Command[] {
  return lines.length === 0 ? [] : [{ file: "tc", args: ["-batch", "-"], input: `${lines.join("\n")}\n` }];
}
