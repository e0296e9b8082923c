import { expect, test } from "vitest";
import { rendezvous } from "./rendezvous.ts";

const clients = Array.from({ length: 1_000 }, (_, index) => `client-${index}`);
const gateways = Array.from({ length: 5 }, (_, index) => ({ name: `gateway-${index}` }));
const owners = (candidates: readonly { readonly name: string }[]) =>
  clients.map((client) => rendezvous(client, candidates, 1)[0]?.name);

test("gateways get about as many clients each, in whatever order they are listed", () => {
  const counts = Object.values(Object.groupBy(owners(gateways), (name) => name ?? ""));
  expect(counts).toHaveLength(5);
  for (const { length } of counts.map((each) => each ?? [])) expect(Math.abs(length - 200)).toBeLessThan(60);
  expect(owners(gateways.toReversed())).toEqual(owners(gateways));
});

test("when one goes only its clients move", () => {
  const [gone, ...rest] = gateways;
  const [before, after] = [owners(gateways), owners(rest)];
  const stayed = before.map((owner) => owner !== gone?.name);
  expect(after.filter((_, index) => stayed[index])).toEqual(before.filter((_, index) => stayed[index]));
});

test("without candidates there is none", () => {
  expect(rendezvous("client", [], 1)).toEqual([]);
});

test("of several that a key belongs to only the one that goes is replaced", () => {
  const names = (candidates: readonly { readonly name: string }[]) =>
    rendezvous("client", candidates, 3).map(({ name }) => name);
  const before = names(gateways);
  const [gone] = before;
  const after = names(gateways.filter(({ name }) => name !== gone));
  expect(after).toHaveLength(3);
  expect(after).toEqual(expect.arrayContaining(before.slice(1)));
  expect(names(gateways.slice(0, 3))).toEqual(gateways.slice(0, 3).map(({ name }) => name));
});
