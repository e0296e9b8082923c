import { describe, expect, test } from "vitest";
import type { GatewayClient } from "../../gateway/config.ts";
import { PeerBook } from "../../gateway/peers.ts";
import { inShares, peerDifferences, peerScript } from "./peers.ts";
import { nftScript } from "./table.ts";

const pod = (id: string, ...addresses: string[]): GatewayClient => ({ id, addresses });

test("a client's addresses share one mark, in one transaction", () => {
  expect(peerScript(new PeerBook().sync([pod("uid-1", "10.1.0.2", "FD00:1::2")]))).toBe(
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
  book.commit(book.sync(clients));
  expect(peerScript(book.sync(clients))).toBe("");
  expect(peerScript(new PeerBook(book.peers).sync(clients))).toBe("");
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
    expect(peerDifferences(peers, table(intact))).toEqual({ differences: [], steps: [], strangers: [] });
  });

  test("get back what is missing, and lose what is not theirs, element by element", () => {
    const changed = { ...intact, clients4: ["10.1.0.2 : 1", "10.1.0.3 : 7", "10.1.0.9 : 9"], inner6: [] };
    expect(peerDifferences(peers, table(changed))).toEqual({
      differences: [
        { object: "map", text: "nft map egress_nat_gateway clients4 has other elements" },
        { object: "set", text: "nft set egress_nat_gateway inner6 has other elements" },
      ],
      steps: [
        nftScript(
          [
            "delete element inet egress_nat_gateway clients4 { 10.1.0.3, 10.1.0.9 }",
            'add element inet egress_nat_gateway clients4 { 10.1.0.3 comment "b" : 2 }',
            "add element inet egress_nat_gateway inner6 { fd00:1::2 . 1 }",
            "",
          ].join("\n"),
        ),
      ],
      strangers: ["10.1.0.9"],
    });
  });

  test("lose what stands for every other address, which has no flows of its own", () => {
    const changed = { ...intact, clients4: [...intact.clients4, "* : 1"], inner4: [...intact.inner4, "*"] };
    expect(peerDifferences(peers, table(changed))).toMatchObject({
      steps: [
        nftScript(
          [
            "delete element inet egress_nat_gateway clients4 { * }",
            "delete element inet egress_nat_gateway inner4 { * }",
            "",
          ].join("\n"),
        ),
      ],
      strangers: [],
    });
  });
});
