import {
  canonicalAddress,
  FAMILIES,
  formatRange,
  mergeRanges,
  parseAddress,
  parseCidr,
  type Range,
  rangeOf,
} from "@egress-nat/addresses";
import { z } from "zod";
import { understood } from "../../kernel/output.ts";

/** What the kernel holds of one table. */
export interface NftTableState {
  /** All but what is in it, as this nft prints it. */
  readonly definition: string;
  readonly sets: ReadonlyMap<string, NftSetState>;
  readonly chains: ReadonlyMap<string, NftChainState>;
  /** Name -> devices. */
  readonly flowtables: ReadonlyMap<string, readonly string[]>;
}

interface NftSetState {
  /** All but its elements, as this nft prints it. */
  readonly definition: string;
  /** Understood as they are asked for, because a gateway's are as many as its clients. */
  readonly elements: Iterable<NftElementState>;
}

export interface NftChainState {
  /** All but its rules, as this nft prints it. */
  readonly definition: string;
  readonly rules: readonly NftRuleState[];
}

interface NftRuleState {
  readonly comment: string;
  /** As this nft prints it. */
  readonly body: string;
}

interface NftElementState {
  /**
   * Spelled as in {@link NftSet.elements}; in a set of intervals those that touch are joined. What somebody else has added
   * and founat does not understand is spelled like none of its own.
   */
  readonly text: string;
  readonly comment?: string;
}

const Value = z.union([z.string(), z.number()]);
const Key = z.union([
  z.object({ concat: z.array(Value) }),
  Value,
  z.object({ prefix: z.object({ addr: z.string(), len: z.number() }) }),
  z.object({ range: z.tuple([z.string(), z.string()]) }),
]);
const Verdict = z.union([
  z.object({ accept: z.null() }).transform(() => "accept"),
  z.object({ goto: z.object({ target: z.string() }) }).transform(({ goto: { target } }) => `goto ${target}`),
]);
// Clients first, because there are ten thousand of them: what an element is not costs more to find out than what it is.
const Element = z.union([
  z.tuple([
    z.union([z.object({ elem: z.object({ val: Value, comment: z.string().optional() }) }), Value]),
    Value,
  ]),
  z.tuple([z.union([z.object({ concat: z.array(Value) }), Value]), Verdict]),
  Key,
  // With a comment of somebody else.
  z.object({ elem: z.object({ val: Key }) }).transform(({ elem }) => elem.val),
]);
type Element = z.infer<typeof Element>;
/** Newer ones of nft print one flag as it is; a flowtable whose last device is gone has none. */
const List = z.union([z.string().transform((word) => [word]), z.array(z.string())]).default([]);
/** A table or a chain. */
const Named = z.looseObject({ name: z.string() });
const NftSetObject = z.looseObject({
  name: z.string(),
  elem: z.array(z.unknown()).default([]),
  flags: List,
});
const Listing = z.object({
  nftables: z.array(
    z.object({
      table: Named.optional(),
      set: NftSetObject.optional(),
      map: NftSetObject.optional(),
      flowtable: z.object({ name: z.string(), dev: List }).optional(),
      chain: Named.optional(),
      rule: z.object({ chain: z.string(), comment: z.string().default(""), expr: z.unknown() }).optional(),
    }),
  ),
});

/**
 * @param output of `nft -j list table inet NAME`; empty where there is no such table
 * @throws FounatError `unexpected-output`
 */
export function parseTable(output: string): NftTableState | undefined {
  if (output.trim() === "") return undefined;
  const { nftables } = understood(Listing, "nft -j list table", JSON.parse(output));
  let ofTable = "";
  const sets = new Map<string, NftSetState>();
  const chains = new Map<string, { definition: string; rules: NftRuleState[] }>();
  const flowtables = new Map<string, readonly string[]>();
  for (const { table, set, map, flowtable, chain, rule } of nftables) {
    if (table) ofTable = definition(table);
    const setOrMap = set ?? map;
    if (setOrMap) {
      const { elem, ...rest } = setOrMap;
      const isInterval = rest.flags.includes("interval");
      sets.set(rest.name, {
        definition: definition(rest),
        elements: { [Symbol.iterator]: () => elements(elem, isInterval) },
      });
    }
    if (flowtable) flowtables.set(flowtable.name, flowtable.dev);
    if (chain) chains.set(chain.name, { definition: definition(chain), rules: [] });
    if (rule) {
      const { comment, expr } = rule;
      chains.get(rule.chain)?.rules.push({ comment, body: JSON.stringify(expr) });
    }
  }
  return { definition: ofTable, sets, chains, flowtables };
}

// Handles are the kernel's numbers for what it holds; what is in a table needs not say in which.
function definition({ handle: _, table: __, ...object }: Record<string, unknown>): string {
  return JSON.stringify(object);
}

function* elements(list: readonly unknown[], isInterval: boolean): Generator<NftElementState> {
  const ranges = { ipv4: [] as Range[], ipv6: [] as Range[] };
  for (const raw of list) {
    const { data: element } = Element.safeParse(raw);
    const range = isInterval ? asRange(element) : undefined;
    if (range) ranges[range.family].push(range);
    else if (Array.isArray(element)) yield mapEntry(element);
    else if (typeof element === "string" || typeof element === "number") yield { text: canonical(element) };
    else if (typeof element === "object" && "concat" in element) {
      yield { text: concatenation(element) };
    } else yield { text: JSON.stringify(raw) };
  }
  for (const family of FAMILIES) {
    for (const range of mergeRanges(ranges[family])) yield { text: formatRange(family, range) };
  }
}

function mapEntry([key, value]: Extract<Element, readonly unknown[]>): NftElementState {
  if (typeof key !== "object") return { text: `${canonical(key)} : ${canonical(value)}` };
  if ("concat" in key) return { text: `${concatenation(key)} : ${value}` };
  const { val, comment } = key.elem;
  return { text: `${canonical(val)} : ${canonical(value)}`, ...(comment !== undefined && { comment }) };
}

function concatenation({ concat }: { readonly concat: readonly (string | number)[] }): string {
  return concat.map(canonical).join(" . ");
}

function asRange(element: Element | undefined): (Range & { family: "ipv4" | "ipv6" }) | undefined {
  const address = typeof element === "string" ? parseAddress(element) : undefined;
  if (address !== undefined) return { family: address.family, first: address.value, last: address.value };
  if (typeof element !== "object" || Array.isArray(element)) return undefined;
  if ("range" in element) {
    const [first, last] = element.range.map(parseAddress);
    return first && last && { family: first.family, first: first.value, last: last.value };
  }
  if (!("prefix" in element)) return undefined;
  const prefix = parseCidr(`${element.prefix.addr}/${element.prefix.len}`);
  return prefix && { family: prefix.family, ...rangeOf(prefix) };
}

/** Of what is no address, for instance `*` for every key that no other element has: as it is. */
function canonical(value: string | number): string {
  return canonicalAddress(String(value)) ?? String(value);
}
