import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { GatewayClient } from "./config.ts";
import { PeerBook } from "./peers.ts";

const pod = (id: string, ...addresses: string[]): GatewayClient => ({ id, addresses });

test("an address that changes its owner gets another mark, and its flows end", () => {
  const book = new PeerBook();
  book.commit(book.sync([pod("a", "10.1.0.2")]));
  const changes = book.change([pod("b", "10.1.0.2")], ["a"]);
  expect([...changes.removed.keys()]).toEqual(["10.1.0.2"]);
  expect(changes.put.get("10.1.0.2")).toEqual({ id: "b", mark: 2 });
});

test("of two clients that name one address the later has it", () => {
  const book = new PeerBook();
  book.commit(book.sync([pod("old", "10.1.0.2"), pod("new", "10.1.0.2")]));
  expect(book.peers.get("10.1.0.2")?.id).toBe("new");
});

test("a client that changes one address keeps its mark and the other", () => {
  const book = new PeerBook();
  book.commit(book.sync([pod("a", "10.1.0.2", "fd00:1::2")]));
  const changes = book.change([pod("a", "10.1.0.9", "fd00:1::2")], []);
  expect(changes.put).toEqual(new Map([["10.1.0.9", { id: "a", mark: 1 }]]));
  expect([...changes.removed.keys()]).toEqual(["10.1.0.2"]);
});

test.each(["", 'a"b', "a\nb", "x".repeat(121)])("the id %j is refused", (id) => {
  expect(() => new PeerBook().sync([pod(id, "10.1.0.2")])).toThrow("client id");
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
