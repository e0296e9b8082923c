import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { changeOf, clientsOf } from "./clients.ts";
import type { GatewaySlice, SliceEntry } from "./slice.ts";

const MIDNIGHT = "2026-01-01T00:00:00Z";
const LATER = "2026-01-01T00:00:00.000001Z";

function slice(name: string, ...clients: readonly Omit<SliceEntry, "id" | "namespace">[]): GatewaySlice {
  const metadata = { name, namespace: "internet", uid: name, generation: 1, resourceVersion: "1" };
  const namespace = `of-${name}`;
  return {
    metadata,
    entries: clients.map((client, index) => ({ id: `${name}/${index}`, namespace, ...client })),
  };
}

const everybody = () => true;

const OWN = new Set(["10.0.9.9"]);

const addressesOf = (slices: readonly GatewaySlice[], mayUse: (namespace: string) => boolean = everybody) =>
  [...clientsOf(slices, mayUse, OWN)].map(([id, { addresses }]) => [id, ...addresses]);

describe("clients of slices", () => {
  test("are those of all slices", () => {
    const n1 = slice("n1", { addresses: ["10.0.1.1", "fd00::1:1"], addedAt: MIDNIGHT });
    const n2 = slice(
      "n2",
      { addresses: ["10.0.2.1"], addedAt: MIDNIGHT },
      { addresses: ["10.0.2.2"], addedAt: LATER },
    );
    expect(addressesOf([n1, n2])).toEqual([
      ["n1/0", "10.0.1.1", "fd00::1:1"],
      ["n2/0", "10.0.2.1"],
      ["n2/1", "10.0.2.2"],
    ]);
  });

  test("have no address of the gateway's own: a client had it before", () => {
    const n1 = slice(
      "n1",
      { addresses: ["10.0.9.9"], addedAt: MIDNIGHT },
      { addresses: ["10.0.9.9", "fd00::1:1"], addedAt: LATER },
    );
    expect(addressesOf([n1])).toEqual([["n1/1", "fd00::1:1"]]);
  });

  test.each([LATER, "2026-01-01T01:00:00.000001+01:00"])(
    "of two that claim an address the later one has it: %s",
    (addedAt) => {
      const before = slice("n1", { addresses: ["10.0.1.1"], addedAt: MIDNIGHT });
      const after = slice("n2", { addresses: ["10.0.1.1"], addedAt });
      expect(addressesOf([before, after])).toEqual([["n2/0", "10.0.1.1"]]);
      expect(addressesOf([after, before])).toEqual([["n2/0", "10.0.1.1"]]);
    },
  );

  test.each([
    ["each its own", ["10.0.2.1"]],
    ["the same", ["10.0.1.1"]],
  ])(
    "do not include those whose namespace may not use the Egress, when two have %s address",
    (_, addresses) => {
      const outsider = slice("n1", { addresses: ["10.0.1.1"], addedAt: LATER });
      const client = slice("n2", { addresses: [...addresses, "10.0.2.2"], addedAt: MIDNIGHT });
      const held = addresses.filter((address) => address !== "10.0.1.1");
      expect(addressesOf([outsider, client], (namespace) => namespace === "of-n2")).toEqual([
        ["n2/0", ...held, "10.0.2.2"],
      ]);
    },
  );

  test("one that loses an address keeps its others", () => {
    const before = slice("n1", { addresses: ["10.0.1.1", "fd00::1:1"], addedAt: MIDNIGHT });
    const after = slice("n2", { addresses: ["10.0.1.1"], addedAt: LATER });
    expect(addressesOf([before, after])).toEqual([
      ["n1/0", "fd00::1:1"],
      ["n2/0", "10.0.1.1"],
    ]);
  });

  test("no address has two clients, whatever the slices and their order are", () => {
    const address = fc.constantFrom("10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1");
    const entry = fc.record({
      addresses: fc.uniqueArray(address, { minLength: 1 }),
      addedAt: fc.constantFrom(MIDNIGHT, LATER, "no time"),
    });
    const slices = fc
      .array(fc.array(entry), { maxLength: 4 })
      .map((all) => all.map((entries, index) => slice(`n${index}`, ...entries)));
    fc.assert(
      fc.property(slices, (some) => {
        const claimed = new Set(some.flatMap(({ entries }) => entries.flatMap(({ addresses }) => addresses)));
        const held = addressesOf(some).flatMap(([, ...addresses]) => addresses);
        expect(held.toSorted()).toEqual([...claimed].toSorted());
        expect(addressesOf([...some].reverse()).toSorted()).toEqual(addressesOf(some).toSorted());
      }),
    );
  });
});

describe("a change", () => {
  const one = clientsOf([slice("n1", { addresses: ["10.0.1.1"], addedAt: MIDNIGHT })], everybody, OWN);
  const moved = clientsOf([slice("n1", { addresses: ["10.0.1.9"], addedAt: MIDNIGHT })], everybody, OWN);
  const two = clientsOf(
    [
      slice("n1", { addresses: ["10.0.1.1"], addedAt: MIDNIGHT }),
      slice("n2", { addresses: ["10.0.2.1"], addedAt: MIDNIGHT }),
    ],
    everybody,
    OWN,
  );

  test("holds what is new", () => {
    expect(changeOf(one, two)).toEqual({
      put: [expect.objectContaining({ id: "n2/0", addresses: ["10.0.2.1"] })],
      remove: [],
    });
  });

  test("holds what is gone", () => {
    expect(changeOf(two, one)).toEqual({ put: [], remove: ["n2/0"] });
  });

  test("holds whoever has other addresses", () => {
    expect(changeOf(one, moved)).toEqual({
      put: [expect.objectContaining({ id: "n1/0", addresses: ["10.0.1.9"] })],
      remove: [],
    });
  });

  test("is empty between equal sets", () => {
    expect(changeOf(two, new Map(two))).toEqual({ put: [], remove: [] });
  });
});
