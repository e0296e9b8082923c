import { describe, expect, test } from "vitest";
import { tableDifferences, tableScript } from "./diff.ts";
import { parseTable } from "./state.ts";
import { kernelComment, type NftTable } from "./table.ts";

const rule = { text: 'oifname "lo" accept', comment: "this host" };
const table: NftTable = {
  name: "t",
  comment: "of a test",
  sets: [{ name: "s", kind: "set", type: "ipv4_addr", comment: "addresses", elements: ["192.0.2.1"] }],
  chains: [
    {
      name: "c",
      hook: "type filter hook output priority filter; policy accept;",
      comment: "",
      rules: [rule],
    },
  ],
};

const ACCEPT = [{ accept: null }];
const LISTED = {
  table: { family: "inet", name: "t", handle: 1 },
  set: { family: "inet", name: "s", table: "t", type: "ipv4_addr", handle: 2 },
  chain: { family: "inet", table: "t", name: "c", handle: 3, hook: "output", prio: 0, policy: "accept" },
  rule: { family: "inet", table: "t", chain: "c", handle: 4, comment: kernelComment(rule), expr: ACCEPT },
};

/** As nft prints it, with changes. */
function listing(changes: Partial<Record<keyof typeof LISTED, object>> = {}) {
  const objects = Object.entries(LISTED).map(([kind, object]) => ({
    [kind]: { ...object, ...changes[kind as keyof typeof LISTED] },
  }));
  return parseTable(JSON.stringify({ nftables: objects }));
}

const asWanted = { set: { elem: ["192.0.2.1"] } };

test("what agrees has no differences, whatever its handles are", () => {
  const state = listing({ ...asWanted, table: { handle: 7 }, rule: { handle: 8 } });
  expect(tableDifferences(table, state, { listing: listing() })).toEqual([]);
});

test.each([
  [
    "a rule's body under its old comment",
    { rule: { expr: [{ drop: null }] } },
    "nft chain t c has other rules",
  ],
  ["a rule's comment", { rule: { comment: "mine" } }, "nft chain t c has other rules"],
  ["a chain's policy", { chain: { policy: "drop" } }, "nft chain t c is another one"],
  ["a set's type", { set: { type: "inet_service", elem: [] } }, "nft set t s is another one"],
  ["a set's elements", { set: { elem: ["192.0.2.2"] } }, "nft set t s has other elements"],
  ["a table that sleeps", { table: { flags: ["dormant"] } }, "nft table t is another one"],
])("%s is a difference", (_, changes, difference) => {
  expect(tableDifferences(table, listing({ ...asWanted, ...changes }), { listing: listing() })).toEqual([
    { object: difference.split(" ")[1], text: difference },
  ]);
});

test("addresses that touch stay apart, but in a set of intervals", () => {
  const elements = ["192.0.2.4", "192.0.2.5"];
  const differences = (changes: object, flags: object) =>
    tableDifferences(
      { ...table, sets: table.sets.map((set) => ({ ...set, ...changes })) },
      listing({ set: { elem: elements, ...flags } }),
      { listing: listing({ set: flags }) },
    );
  expect(differences({ elements }, {})).toEqual([]);
  const interval = { elements: ["192.0.2.4/31"], interval: true };
  expect(differences(interval, { flags: ["interval"] })).toEqual([]);
  expect(differences(interval, { flags: "interval" })).toEqual([]); // as nft 1.1.1 prints one
});

describe("an element of somebody else's is a difference, whatever it is", () => {
  const comment = "of somebody else";
  const prefix = { prefix: { addr: "198.51.100.0", len: 24 } };
  const range = { range: ["198.51.100.1", "198.51.100.5"] };
  const other = ["nft set t s has other elements"];

  const differences = (set: Partial<NftTable["sets"][number]>, flags: object, elem: readonly unknown[]) =>
    tableDifferences(
      { ...table, sets: table.sets.map((before) => ({ ...before, ...set })) },
      listing({ set: { ...flags, elem } }),
      { listing: listing({ set: flags }) },
    ).map(({ text }) => text);

  test.each([
    ["a prefix with a comment", { elem: { val: prefix, comment } }],
    ["a range with a comment", { elem: { val: range, comment } }],
    ["an address with a comment", { elem: { val: "198.51.100.1", comment } }],
    ["what no nft prints yet", { news: [1] }],
  ])("%s, in a set of intervals", (_, element) => {
    const own = { prefix: { addr: "192.0.2.0", len: 24 } };
    const intervals = { elements: ["192.0.2.0/24"], interval: true };
    const flags = { flags: ["interval"] };
    expect(differences(intervals, flags, [own])).toEqual([]);
    expect(differences(intervals, flags, [own, element])).toEqual(other);
  });

  test.each([
    ["an address with a comment", { elem: { val: "198.51.100.1", comment } }],
    ["an address and a port with a comment", { elem: { val: { concat: ["198.51.100.1", 5] }, comment } }],
    ["every key that no other has", "*"],
    ["a number", 5],
    ["what no nft prints yet", { news: [1] }],
  ])("%s, in a set of addresses", (_, element) => {
    expect(differences({}, {}, ["192.0.2.1"])).toEqual([]);
    expect(differences({}, {}, ["192.0.2.1", element])).toEqual(other);
  });
});

test("a rule that counts elsewhere, or by itself, is a difference", () => {
  const counting = (counter: unknown) => listing({ ...asWanted, rule: { expr: [{ counter }, ...ACCEPT] } });
  expect(tableDifferences(table, counting("a"), { listing: counting("a") })).toEqual([]);
  for (const other of [counting("b"), counting({ packets: 0, bytes: 0 }), listing(asWanted)]) {
    expect(tableDifferences(table, other, { listing: counting("a") })).not.toEqual([]);
  }
});

describe("the script", () => {
  test("leaves chains hooked where only rules differ", () => {
    const state = listing({ ...asWanted, rule: { expr: [] } });
    expect(tableScript(table, state, { listing: listing() })).toMatch(/^flush table inet t\n/);
  });

  test("adds a chain that is missing, and takes away one that is not wanted", () => {
    const state = listing({ ...asWanted, chain: { name: "d" }, rule: { chain: "d" } });
    const script = tableScript(table, state, { listing: undefined });
    expect(script).toMatch(/^flush table inet t\n[^{]*delete chain inet t d\n/);
    expect(script).toContain("chain c {");
  });

  test.each(["table", "set", "chain"] as const)("replaces all where the %s is another one", (kind) => {
    const state = listing({ [kind]: { flags: ["other"] } });
    expect(tableScript(table, state, { listing: listing() })).toMatch(/^delete table inet t\n/);
  });
});
