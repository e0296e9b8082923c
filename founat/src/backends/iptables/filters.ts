import type { Difference } from "../../difference.ts";
import { FAMILIES } from "../../family.ts";
import type { GatewayPolicy } from "../../gateway/policy.ts";
import type { Command } from "../../kernel/step.ts";
import { setName } from "./sets.ts";

/** Device -> the filters (tc-basic(8)) of its qdisc for both ways, a line for each, as tc prints them. */
export type Filters = ReadonlyMap<string, string>;

interface Filter {
  /** Behind `filter add dev DEVICE`. */
  readonly text: string;
  readonly printed: string;
}

const PROTOCOLS = { ipv4: "ip", ipv6: "ipv6" } as const;

/** Where iptables has no hook: before conntrack puts fragments together, and after all NAT. What drops is made first. */
function gatewayFilters({ uplink, tunnels, marks }: GatewayPolicy): ReadonlyMap<string, readonly Filter[]> {
  const pass = `skbedit mark ${marks.passed} pass`;
  // Nothing leaves with a client's address.
  const leaving = FAMILIES.map((family, index) =>
    dropping(
      `egress protocol ${PROTOCOLS[family]} pref ${index + 1}`,
      `ipset(${setName("clients", family)} src)`,
    ),
  );
  const devices = new Map<string, readonly Filter[]>([[uplink, leaving]]);
  for (const { name, family } of tunnels) {
    const where = `ingress protocol ${PROTOCOLS[family]} pref 1`;
    const own = `ipset(${setName("inner", family)} src,src)`;
    devices.set(name, [
      // A client speaks for another.
      dropping("ingress protocol all pref 2"),
      // An inner packet has its client's own source.
      {
        text: `${where} basic match ${own} action ${pass}`,
        printed: `${where} ${own} action order 1: ${pass}`,
      },
    ]);
  }
  return devices;
}

function dropping(where: string, match?: string): Filter {
  const printed = "action order 1: gact action drop random type none pass val 0";
  return {
    text: [where, "basic", ...(match === undefined ? [] : ["match", match]), "action drop"].join(" "),
    printed: [where, ...(match === undefined ? [] : [match]), printed].join(" "),
  };
}

export const READ_FILTERS: Command = {
  file: "sh",
  args: [
    "-c",
    `tc qdisc show | sed -n 's/^qdisc clsact .* dev \\([^ ]*\\) .*/\\1/p' | while read -r dev; do
       for way in ingress egress; do echo "on $dev $way"; tc filter show dev "$dev" $way || exit 1; done
     done`,
  ],
  mayFail: true,
};

export function parseFilters(output: string): Filters {
  const devices = new Map<string, string>();
  for (const [, device = "", way = "", text = ""] of output.matchAll(
    /^on (\S+) (\S+)\n((?:(?!on ).*\n)*)/gm,
  )) {
    // First the classifier, then each filter of it; without the number of an action among all, and how many use it.
    const filters = text.split(/^filter /m).filter((filter) => filter.includes(" handle "));
    const lines = filters.map((filter) => {
      const words = filter
        .replace(/ basic chain 0 handle \S+/, "")
        .replace(/\bindex \d+ ref \d+ bind \d+/g, "");
      return `${way} ${words.replaceAll(/\s+/g, " ").trim()}`;
    });
    devices.set(device, [devices.get(device) ?? "", ...lines].filter(Boolean).toSorted().join("\n"));
  }
  return devices;
}

/** @param replaced links whose filters the kernel has dropped by then */
export function filterChanges(policy: GatewayPolicy, actual: Filters, replaced: ReadonlySet<string>) {
  const differences: Difference[] = [];
  const lines: string[] = [];
  for (const [device, filters] of gatewayFilters(policy)) {
    const there = replaced.has(device) ? undefined : actual.get(device);
    if (
      there ===
      filters
        .map(({ printed }) => printed)
        .toSorted()
        .join("\n")
    )
      continue;
    differences.push({
      object: "filter",
      text: `tc filters of ${device} are ${there ? "others" : "missing"}`,
    });
    if (there !== undefined) lines.push(`qdisc del dev ${device} clsact`);
    lines.push(
      `qdisc add dev ${device} clsact`,
      ...filters.map(({ text }) => `filter add dev ${device} ${text}`),
    );
  }
  return { differences, lines };
}

export function filterRemoval(actual: Filters): string[] {
  const own = [...actual].filter(([, text]) => text.includes("ipset(en-"));
  return own.map(([device]) => `qdisc del dev ${device} clsact`);
}

/** Whether the kernel takes such filters: in a chain of lo to which nothing goes, for as long as that takes. */
export function trialOf(policy: GatewayPolicy): Command[] {
  const filters = [...gatewayFilters(policy).values()].flat();
  const lines = filters.map(({ text }, index) => text.replace(/^.*?pref \d/, `pref ${index + 1}`));
  const script = `tc qdisc del dev lo clsact 2>/dev/null
    tc qdisc add dev lo clsact && tc -batch - && tc qdisc del dev lo clsact`;
  const input = lines.map((line) => `filter add dev lo ingress chain 1 protocol all ${line}\n`).join("");
  return [{ file: "sh", args: ["-c", script], input }];
}

export function tcStep(lines: readonly string[]): Command[] {
  return lines.length === 0 ? [] : [{ file: "tc", args: ["-batch", "-"], input: `${lines.join("\n")}\n` }];
}
