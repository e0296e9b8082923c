import type { Difference } from "../../difference.ts";
import { FAMILIES } from "../../family.ts";
import type { GatewayPolicy } from "../../gateway/policy.ts";
import type { Command } from "../../kernel/step.ts";
import { setName } from "./sets.ts";

/** A filter of traffic control (tc-basic(8)): it looks before conntrack puts fragments together, or after all NAT. */
interface Filter {
  readonly device: string;
  readonly way: Way;
  readonly priority: number;
  readonly protocol: "ip" | "ipv6" | "all";
  /** Of tc-ematch(8); empty: of everything. */
  readonly match: string;
  readonly action: string;
  /** How tc prints the action. */
  readonly printed: string;
}
type Way = "ingress" | "egress";

/** Those of founat are the first ones; what is behind them is of somebody else. */
const PRIORITIES = 2;

/** Device that has a qdisc for filters -> priority -> how tc prints them. */
export type Filters = ReadonlyMap<string, Readonly<Record<Way, ReadonlyMap<number, string>>>>;

const PROTOCOLS = { ipv4: "ip", ipv6: "ipv6" } as const;
const DROP = { action: "drop", printed: "action order 1: gact action drop random type none pass val 0" };

/** In the order in which they are made: what drops comes first. */
export function gatewayFilters({ uplink, tunnels, marks: { passed } }: GatewayPolicy): Filter[] {
  const mark = {
    action: `skbedit mark 0x${passed.toString(16)} pass`,
    printed: `action order 1: skbedit mark ${passed} pass`,
  };
  return [
    ...tunnels.flatMap(({ name: device, family }): Filter[] => {
      const [way, protocol] = ["ingress", PROTOCOLS[family]] as const;
      const match = `ipset(${setName("inner", family)} src,src)`;
      return [
        // A client speaks for another.
        { device, way, priority: 2, protocol: "all", match: "", ...DROP },
        // An inner packet has its client's own source.
        { device, way, priority: 1, protocol, match, ...mark },
      ];
    }),
    // Fail closed, whatever became of the rules: nothing leaves with a client's address.
    ...FAMILIES.map((family, index): Filter => {
      const match = `ipset(${setName("clients", family)} src)`;
      const where = { device: uplink, way: "egress", priority: index + 1 } as const;
      return { ...where, protocol: PROTOCOLS[family], match, ...DROP };
    }),
  ];
}

/** Both ways of each device that has a qdisc for them. */
export const READ_FILTERS: Command = {
  file: "sh",
  args: [
    "-c",
    `tc qdisc show | sed -n 's/^qdisc clsact .* dev \\([^ ]*\\) .*/\\1/p' | while read -r dev; do
       for way in ingress egress; do echo "on $dev $way" && tc filter show dev "$dev" $way; done
     done`,
  ],
  mayFail: true,
};

/** A way, or a filter: those of other chains are nobody's, because nothing goes there. */
const LINE = /^(?:on (\S+) (ingress|egress)|filter .*\b(protocol \S+) pref (\d+) \S+ chain (\d+).*)$/;

export function parseFilters(text: string): Filters {
  const devices = new Map<string, Record<Way, Map<number, string>>>();
  let filters = new Map<number, string>();
  let last = 0;
  for (const line of text.split("\n")) {
    const [, device, way, protocol, priority, chain] = LINE.exec(line.trim()) ?? [];
    if (device !== undefined) {
      const ways = devices.get(device) ?? { ingress: new Map(), egress: new Map() };
      devices.set(device, ways);
      filters = ways[way as Way];
    } else if (protocol !== undefined) {
      last = chain === "0" ? Number(priority) : 0;
      // First the classifier, then each filter of it.
      if (line.includes(" handle ") && last > 0) filters.set(last, `${filters.get(last) ?? ""}${protocol} `);
    } else if (last > 0) {
      // Without the number of an action among all, and how many use it.
      const words = line
        .trim()
        .replace(/^index .*/, "")
        .replaceAll(/ +/g, " ");
      filters.set(last, `${filters.get(last) ?? ""}${words && `${words} `}`);
    }
  }
  return devices;
}

/** @param replaced links whose filters the kernel has dropped by then */
export function filterChanges(
  policy: GatewayPolicy,
  actual: Filters,
  replaced: ReadonlySet<string>,
): { readonly differences: readonly Difference[]; readonly lines: string[] } {
  const differences: Difference[] = [];
  const lines = new Set<string>();
  for (const filter of gatewayFilters(policy)) {
    const { device, way, priority, protocol, match, printed } = filter;
    const present = replaced.has(device) ? undefined : actual.get(device)?.[way];
    const text = present?.get(priority);
    if (text?.trim() === [`protocol ${protocol}`, match, printed].filter(Boolean).join(" ")) continue;
    const words = text === undefined ? "is missing" : "is another one";
    differences.push({ object: "filter", text: `tc filter ${device} ${way} ${priority} ${words}` });
    const where = `dev ${device} ${way}`;
    if (present === undefined) lines.add(`qdisc add dev ${device} clsact`);
    if (text !== undefined) lines.add(`filter del ${where} pref ${priority}`);
    lines.add(addLine(`${where} protocol ${protocol} pref ${priority}`, filter));
  }
  return { differences, lines: [...lines] };
}

/** Whether the kernel takes such filters: in a chain of lo to which nothing goes, for as long as that takes. */
export function trialOf(policy: GatewayPolicy): Command[] {
  const lines = gatewayFilters(policy).map(({ protocol, ...filter }, index) =>
    addLine(`dev lo ingress chain 1 protocol ${protocol} pref ${index + 1}`, filter),
  );
  const script =
    "tc qdisc del dev lo clsact 2>/dev/null; tc qdisc add dev lo clsact && tc -batch - && tc qdisc del dev lo clsact";
  return [{ file: "sh", args: ["-c", script], input: `${lines.join("\n")}\n` }];
}

function addLine(where: string, { match, action }: Pick<Filter, "match" | "action">): string {
  return `filter add ${where} ${match === "" ? "basic" : `basic match ${match}`} action ${action}`;
}

/** Takes founat's filters away, and the qdiscs that nobody else uses. */
export function filterRemoval(actual: Filters): string[] {
  return [...actual].flatMap(([device, { ingress, egress }]) => {
    const own = Object.entries({ ingress, egress }).filter(([, filters]) =>
      [...filters.values()].some((text) => text.includes("ipset(en-")),
    );
    if (own.length === 0) return [];
    const others = [...ingress.keys(), ...egress.keys()].some((priority) => priority > PRIORITIES);
    if (!others) return [`qdisc del dev ${device} clsact`];
    return own.flatMap(([way, filters]) =>
      [...filters.keys()]
        .filter((priority) => priority <= PRIORITIES)
        .map((priority) => `filter del dev ${device} ${way} pref ${priority}`),
    );
  });
}

export function tcStep(lines: readonly string[]): Command[] {
  return lines.length === 0 ? [] : [{ file: "tc", args: ["-batch", "-"], input: `${lines.join("\n")}\n` }];
}
