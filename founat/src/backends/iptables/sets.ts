import {
  FAMILIES,
  type Family,
  formatRange,
  gapsOf,
  networksOf,
  type Range,
  rangeOf,
} from "@egress-nat/addresses";
import type { Difference } from "../../difference.ts";
import type { GatewayPolicy } from "../../gateway/policy.ts";
import { batch, type Command } from "../../kernel/step.ts";
import { parseCidr } from "../../routing/cidr.ts";
import { VERSION } from "../spelling.ts";

/** Set -> its elements, each with what ipset keeps of it. */
export type Sets = ReadonlyMap<string, readonly string[]>;

const KINDS = {
  /** Outer source: mark of the client; the id is the comment. */
  clients: "hash:ip skbinfo comment",
  /** Inner source and mark of the client. */
  inner: "hash:ip,mark",
  /** What clients may reach. */
  allowed: "hash:net",
} as const;
type Kind = keyof typeof KINDS;

export function setName(kind: Kind, family: Family): string {
  return `en-${kind}${VERSION[family]}`;
}

const SETS = FAMILIES.flatMap((family) =>
  (Object.keys(KINDS) as Kind[]).map((kind) => {
    const [type = "", ...options] = KINDS[kind].split(" ");
    const inet = family === "ipv4" ? "inet" : "inet6";
    return {
      ...{ kind, family, name: setName(kind, family) },
      // A million: the kernel takes 65,536 of them otherwise.
      definition: [type, "family", inet, ...options, "maxelem", 1048576].join(" "),
    };
  }),
);

/** Lines that make all sets, empty, where they are missing. */
export const CREATE_SETS: readonly string[] = SETS.map(
  ({ name, definition }) => `create ${name} ${definition}`,
);

/** Each line is a change of its own; that a set or an element is there, or gone, is no failure. */
export function ipsetStep(lines: readonly string[]): Command[] {
  return batch("ipset", ["-exist", "restore"], lines);
}

/** The kernel lets go of what has used a set some time after that is gone. */
export function destroyStep(names: readonly string[]): Command[] {
  const script = `for set; do
    tries=0
    until ipset destroy "$set"; do [ $((tries += 1)) -lt 50 ] || exit 1; sleep 0.1; done
  done`;
  return names.length === 0 ? [] : [{ file: "sh", args: ["-c", script, "sh", ...names] }];
}

/** @param text as `ipset save` prints it */
export function parseSets(text: string): Sets {
  const sets = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [verb, name = "", ...words] = line.split(" ");
    if (!name.startsWith("en-")) continue;
    if (verb === "create") sets.set(name, []);
    else sets.get(name)?.push(words.join(" "));
  }
  return sets;
}

/**
 * What makes the sets those of a policy; clients stay. What clients may reach changes at one instant.
 *
 * @returns lines for before the rules are written, and names of sets that go after that
 */
export function setChanges({ allowed }: GatewayPolicy, sets: Sets) {
  const differences: Difference[] = [];
  const before: string[] = [];
  const gone = new Set([...sets.keys()].filter((name) => !SETS.some((set) => set.name === name)));
  const differs = (name: string, words: string) =>
    differences.push({ object: "set", text: `ipset set ${name} ${words}` });
  for (const name of gone) differs(name, "is not founat's");
  for (const { kind, family, name, definition } of SETS) {
    if (!sets.has(name)) {
      differs(name, "is missing");
      before.push(`create ${name} ${definition}`);
    }
    const networks = kind === "allowed" ? allowedNetworks(family, allowed[family]) : [];
    if (kind !== "allowed" || elementLines(name, networks, sets).length === 0) continue;
    if (sets.has(name)) differs(name, "has other elements");
    const next = `${name}-new`;
    before.push(
      `create ${next} ${definition}`,
      ...elementLines(next, networks, sets),
      `swap ${next} ${name}`,
    );
    gone.add(next);
  }
  return { differences, before, gone: [...gone] };
}

/** What a program has begun that was killed goes on. */
function elementLines(name: string, wanted: readonly string[], sets: Sets): string[] {
  const [wants, present] = [new Set(wanted), new Set((sets.get(name) ?? []).map(canonical))];
  return [
    ...[...present]
      .filter((element) => !wants.has(element))
      .map((text) => `del ${name} ${text.split(" ", 1)}`),
    ...wanted.filter((element) => !present.has(element)).map((text) => `add ${name} ${text}`),
  ];
}

/** ipset spells addresses that hold one of IPv4 otherwise. */
function canonical(element: string): string {
  const [network = "", ...flags] = element.split(" ");
  const prefix = parseCidr(network);
  return [formatRange(prefix.family, rangeOf(prefix)), ...flags].join(" ");
}

/**
 * Networks, and those in them that are not meant. A lookup asks for each length of a prefix that is in use, so the
 * shorter list is the faster one: that of "everything but" has the exceptions.
 */
function allowedNetworks(family: Family, ranges: readonly Range[]): string[] {
  const networks = (of: readonly Range[]) =>
    of.flatMap((range) => networksOf(family, range).map((network) => formatRange(family, rangeOf(network))));
  const everything = rangeOf({ family, first: 0n, length: 0 });
  const [listed, excepted] = [networks(ranges), networks(gapsOf(everything, ranges))];
  if (listed.length <= excepted.length) return listed;
  // There is no element for all addresses.
  const halves = family === "ipv4" ? ["0.0.0.0/1", "128.0.0.0/1"] : ["::/1", "8000::/1"];
  const wide = halves.filter((half) => !excepted.includes(half));
  return [...wide, ...excepted.map((network) => `${network} nomatch`)];
}
