import { FAMILIES } from "@egress-nat/addresses";
import type { Difference } from "../../difference.ts";
import type { GatewayPolicy } from "../../gateway/policy.ts";
import { isLinkName } from "../../iproute/links.ts";
import { batch, type Command } from "../../kernel/step.ts";
import { setName } from "./sets.ts";

/** Device -> the filters (tc-basic(8)) of its qdisc for both ways, in the words by which they are added. */
export type Filters = ReadonlyMap<string, readonly string[]>;

const PROTOCOLS = { ipv4: "ip", ipv6: "ipv6" } as const;

/** Where iptables has no hook: before conntrack puts fragments together, and after all NAT. */
function gatewayFilters({ uplink, tunnels, marks }: GatewayPolicy): Filters {
  // Nothing leaves with a client's address.
  const onUplink = FAMILIES.map((family, index) => {
    const clients = `basic match ipset(${setName("clients", family)} src)`;
    return `egress protocol ${PROTOCOLS[family]} pref ${index + 1} ${clients} action drop`;
  });
  const filters = new Map([[uplink, onUplink]]);
  for (const { name, family } of tunnels) {
    const own = `basic match ipset(${setName("inner", family)} src,src)`;
    filters.set(name, [
      // What has not the client's own source: a client speaks for another. It is made first.
      "ingress protocol all pref 2 basic action drop",
      `ingress protocol ${PROTOCOLS[family]} pref 1 ${own} action skbedit mark ${marks.passed} pass`,
    ]);
  }
  return filters;
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

/** @param output of {@link READ_FILTERS}; not `tc -j`, which prints what filters match as bare text (iproute2's em_ipset.c) */
export function parseFilters(output: string): Filters {
  const devices = new Map<string, readonly string[]>();
  for (const [, device = "", way = "", text = ""] of output.matchAll(
    /^on (\S+) (\S+)\n((?:(?!on ).*\n)*)/gm,
  )) {
    // First the classifier, then each filter of it.
    const filters = text.split(/^filter /m).filter((filter) => filter.includes(" handle "));
    devices.set(device, [...(devices.get(device) ?? []), ...filters.map((filter) => asAdded(way, filter))]);
  }
  return devices;
}

/** As it was added: without the number of an action among all, and how many use it. */
function asAdded(way: string, printed: string): string {
  return `${way} ${printed}`
    .replaceAll(/\bindex \d+ ref \d+ bind \d+/g, "")
    .replaceAll(/\s+/g, " ")
    .replace(/ basic chain 0 handle \S+ (?!action )/, " basic match ")
    .replace(/ basic chain 0 handle \S+ /, " basic ")
    .replace(" action order 1: gact action drop random type none pass val 0", " action drop")
    .replace(" action order 1: ", " action ")
    .trim();
}

/** @param replaced links whose filters the kernel has dropped by then */
export function filterChanges(policy: GatewayPolicy, actual: Filters, replaced: ReadonlySet<string>) {
  const differences: Difference[] = [];
  const lines: string[] = [];
  for (const [device, filters] of gatewayFilters(policy)) {
    const there = replaced.has(device) ? undefined : actual.get(device);
    if (there?.toSorted().join("\n") === filters.toSorted().join("\n")) continue;
    const text = `tc filter of ${device} ${there?.length ? "is another one" : "is missing"}`;
    differences.push({ object: "filter", text });
    if (there !== undefined) lines.push(`qdisc del dev ${device} clsact`);
    lines.push(
      `qdisc add dev ${device} clsact`,
      ...filters.map((words) => `filter add dev ${device} ${words}`),
    );
  }
  return { differences, lines };
}

/** One process for all lines. */
export function tcStep(lines: readonly string[]): Command[] {
  return batch("tc", ["-batch", "-"], lines);
}

/** A program that was killed may have left a tunnel closed: then no filter there names a set. */
export function filterRemoval(actual: Filters): Command[] {
  const own = [...actual].filter(
    ([device, filters]) => isLinkName(device) || filters.join().includes("ipset(en-"),
  );
  const lines = own.map(([device]) => `qdisc del dev ${device} clsact`);
  // A link may be gone by then, or be another one. A set that a filter still uses cannot be destroyed.
  return batch("tc", ["-force", "-batch", "-"], lines).map((step) => ({ ...step, mayFail: true }));
}

/** Whether the kernel takes such filters: in a chain of lo to which nothing goes, for as long as that takes. */
export function trialOf(policy: GatewayPolicy): Command {
  const script = `tc qdisc del dev lo clsact 2>/dev/null
    tc qdisc add dev lo clsact && tc -batch - && tc qdisc del dev lo clsact`;
  const lines = [...gatewayFilters(policy).values()].flat().map((words, index) => {
    const where = `ingress chain 1 protocol all pref ${index + 1}`;
    return `filter add dev lo ${words.replace(/^.*?(?= basic)/, where)}\n`;
  });
  return { file: "sh", args: ["-c", script], input: lines.join("") };
}
