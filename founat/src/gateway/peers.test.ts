import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { GatewayClient } from "./config.ts";
import { inShares, PeerBook, peerDifferences, peerScript } from "./peers.ts";

const pod = (id: string, ...addresses: string[]): GatewayClient => ({ id, addresses });

function apply(book: PeerBook, changes: ReturnType<PeerBook["sync"]>): string {
  book.commit(changes);
  return peerScript(changes);
}

test("a client's addresses share one mark, in one transaction", () => {
  expect(apply(new PeerBook(), new PeerBook().sync([pod("uid-1", "10.1.0.2", "FD00:1::2")]))).toBe(
    [
      'add element inet egress_nat_gateway clients4 { 10.1.0.2 comment "uid-1" : 1 }',
      "add element inet egress_nat_gateway inner4 { 10.1.0.2 . 1 }",
      'add element inet egress_nat_gateway clients6 { fd00:1::2 comment "uid-1" : 1 }',
      "add element inet egress_nat_gateway inner6 { fd00:1::2 . 1 }",
      "",
    ].join("\n"),
  );
});

describe("changes are shared among processors", () => {
  const put = (count: number) =>
    new PeerBook().sync(
      Array.from({ length: count }, (_, i) => pod(`uid-${i}`, `10.1.${i >> 8}.${i & 255}`)),
    );

  test("where thousands of addresses are new, each in one share", () => {
    const changes = put(5_001);
    const shares = inShares(changes, 8);
    expect(shares.map((share) => share.put.size)).toEqual([2_501, 2_500]);
    expect(new Map(shares.flatMap((share) => [...share.put]))).toEqual(changes.put);
  });

  test("not where some are taken from others, or there are few", () => {
    const taken = { ...put(5_000), removed: new Map([["10.1.0.0", { id: "uid", mark: 1 }]]) };
    for (const changes of [taken, put(10), put(0)]) expect(inShares(changes, 8)).toEqual([changes]);
    expect(inShares(put(5_000), 1)).toHaveLength(1);
  });
});

test("what is known already is not written again, also after a restart", () => {
  const book = new PeerBook();
  const clients = [pod("a", "10.1.0.2"), pod("b", "10.1.0.3")];
  apply(book, book.sync(clients));
  expect(peerScript(book.sync(clients))).toBe("");
  expect(peerScript(new PeerBook(book.peers).sync(clients))).toBe("");
});

test("an address that changes its owner gets another mark, and its flows end", () => {
  const book = new PeerBook();
  apply(book, book.sync([pod("a", "10.1.0.2")]));
  const changes = book.change([pod("b", "10.1.0.2")], ["a"]);
  expect([...changes.removed.keys()]).toEqual(["10.1.0.2"]);
  expect(changes.put.get("10.1.0.2")).toEqual({ id: "b", mark: 2 });
});

test("of two clients that name one address the later has it", () => {
  const book = new PeerBook();
  apply(book, book.sync([pod("old", "10.1.0.2"), pod("new", "10.1.0.2")]));
  expect(book.peers.get("10.1.0.2")?.id).toBe("new");
});

test("a client that changes one address keeps its mark and the other", () => {
  const book = new PeerBook();
  apply(book, book.sync([pod("a", "10.1.0.2", "fd00:1::2")]));
  const changes = book.change([pod("a", "10.1.0.9", "fd00:1::2")], []);
  expect(changes.put).toEqual(new Map([["10.1.0.9", { id: "a", mark: 1 }]]));
  expect([...changes.removed.keys()]).toEqual(["10.1.0.2"]);
});

test.each(["", 'a"b', "a\nb", "x".repeat(121)])("the id %j is refused", (id) => {
  expect(() => new PeerBook().sync([pod(id, "10.1.0.2")])).toThrow("client id");
});

describe("the sets of clients that somebody has changed", () => {
  const peers = new Map([
    ["10.1.0.2", { id: "a", mark: 1 }],
    ["10.1.0.3", { id: "b", mark: 2 }],
    ["fd00:1::2", { id: "a", mark: 1 }],
  ]);
  const table = (elements: Readonly<Record<string, readonly string[]>>) => ({
    sets: new Map(
      Object.entries(elements).map(([name, texts]) => [
        name,
        { definition: "", elements: texts.map((text) => ({ text })) },
      ]),
    ),
  });
  const intact = {
    clients4: ["10.1.0.3 : 2", "10.1.0.2 : 1"],
    inner4: ["10.1.0.2 . 1", "10.1.0.3 . 2"],
    clients6: ["fd00:1::2 : 1"],
    inner6: ["fd00:1::2 . 1"],
  };

  test("are left alone where they are as they should be", () => {
    expect(peerDifferences(peers, table(intact))).toEqual({ differences: [], script: "", strangers: [] });
  });

  test("get back what is missing, and lose what is not theirs, element by element", () => {
    const changed = { ...intact, clients4: ["10.1.0.2 : 1", "10.1.0.3 : 7", "10.1.0.9 : 9"], inner6: [] };
    expect(peerDifferences(peers, table(changed))).toEqual({
      differences: [
        { object: "map", text: "nft map egress_nat_gateway clients4 has other elements" },
        { object: "set", text: "nft set egress_nat_gateway inner6 has other elements" },
      ],
      script: [
        "delete element inet egress_nat_gateway clients4 { 10.1.0.3, 10.1.0.9 }",
        'add element inet egress_nat_gateway clients4 { 10.1.0.3 comment "b" : 2 }',
        "add element inet egress_nat_gateway inner6 { fd00:1::2 . 1 }",
        "",
      ].join("\n"),
      strangers: ["10.1.0.9"],
    });
  });

  test("lose what stands for every other address, which has no flows of its own", () => {
    const changed = { ...intact, clients4: [...intact.clients4, "* : 1"], inner4: [...intact.inner4, "*"] };
    expect(peerDifferences(peers, table(changed))).toMatchObject({
      script: [
        "delete element inet egress_nat_gateway clients4 { * }",
        "delete element inet egress_nat_gateway inner4 { * }",
        "",
      ].join("\n"),
      strangers: [],
    });
  });
});

describe("for any sequence of changes", () => {
  const client = fc
    .tuple(fc.integer({ min: 0, max: 5 }), fc.uniqueArray(fc.integer({ min: 0, max: 6 }), { maxLength: 3 }))
    .map(([id, hosts]) => pod(`pod-${id}`, ...hosts.map((host) => `10.1.0.${host}`)));
  const step = fc.oneof(
    fc.array(client, { maxLength: 5 }).map((put) => ({ sync: put })),
    fc.record({
      put: fc.array(client, { maxLength: 3 }),
      remove: fc.array(
        client.map(({ id }) => id),
        { maxLength: 3 },
      ),
    }),
  );

  test("every address belongs to one client, marks are unique, and a final sync is exact", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 8 }), fc.array(client, { maxLength: 6 }), (steps, final) => {
        const book = new PeerBook();
        for (const s of steps) book.commit("sync" in s ? book.sync(s.sync) : book.change(s.put, s.remove));
        book.commit(book.sync(final));
        const owner = new Map<string, string>();
        const last = new Map(final.map((c) => [c.id, c]));
        for (const c of final)
          for (const address of c.addresses) if (last.get(c.id) === c) owner.set(address, c.id);
        expect(new Map([...book.peers].map(([address, { id }]) => [address, id]))).toEqual(owner);
        const marks = new Map([...book.peers.values()].map(({ id, mark }) => [mark, id]));
        for (const { id, mark } of book.peers.values()) expect(marks.get(mark)).toBe(id);
      }),
    );
  });
});
