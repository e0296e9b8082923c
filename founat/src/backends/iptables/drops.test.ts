import { expect, test } from "vitest";
import { parseDrops } from "./drops.ts";

test("drops are those of rules, of both families and all tables, and of filters", () => {
  const rules = `*raw
:EN-D-no_client - [0:0]
[3:180] -A EN-D-no_client -m comment --comment no_client -j DROP
*mangle
[4:240] -A EN-D-no_client -m comment --comment no_client -j DROP
[9:540] -A PREROUTING -j EN-PREROUTING
`;
  const qdiscs = [
    { kind: "noqueue", dev: "eth0", drops: 7 },
    { kind: "clsact", dev: "eth0", drops: 1 },
    { kind: "clsact", dev: "fou4", drops: 2 },
    { kind: "clsact", dev: "fou6a", drops: 3 },
  ];
  expect(Object.fromEntries(parseDrops([rules, rules], JSON.stringify(qdiscs)))).toEqual({
    no_client: 14,
    untranslated: 1,
    foreign_source: 5,
  });
});
