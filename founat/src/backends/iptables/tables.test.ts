import { expect, test } from "vitest";
import { NO_TABLES, parseTables, tableChanges } from "./tables.ts";

const WANTED = `*raw
:PREROUTING ACCEPT [0:0]
:EN-A - [0:0]
:EN-B - [0:0]
-A PREROUTING -m comment --comment "all" -j EN-A
-A EN-A -p udp -j EN-B
-A EN-B -j DROP
COMMIT
`;
const wanted = parseTables(WANTED);
const changes = (actual: string) => tableChanges(wanted, parseTables(actual), "EN-");

test("what is as it should be is not touched, whatever others have beside it", () => {
  const others = WANTED.replace("-A EN-A", "-A PREROUTING -j THEIRS\n-A EN-A").replace(
    ":EN-B",
    ":THEIRS - [0:0]\n:EN-B",
  );
  for (const actual of [WANTED, others]) expect(changes(actual)).toEqual({ differences: [], text: "" });
});

test("only chains that differ are written, all declared before a rule leads there", () => {
  expect(changes(WANTED.replace("-A EN-B -j DROP", "-A EN-B -j ACCEPT"))).toEqual({
    differences: ["chain raw EN-B has other rules"],
    text: "*raw\n:EN-B - [0:0]\n-A EN-B -j DROP\nCOMMIT\n",
  });
  const { text, differences } = tableChanges(wanted, NO_TABLES, "EN-");
  expect(differences).toHaveLength(3);
  expect(text).toMatch(/^\*raw\n(:EN-. - \[0:0\]\n)+(-[AI] .*\n)+COMMIT\n$/);
});

test.each([
  ["missing", (rules: string) => rules.replace(/-A PREROUTING .*\n/, "")],
  [
    "behind another rule",
    (rules: string) => rules.replace("-A PREROUTING", "-A PREROUTING -j ACCEPT\n-A PREROUTING"),
  ],
  ["there twice", (rules: string) => rules.replace(/(-A PREROUTING .*\n)/, "$1$1")],
])("what leads to founat's rules is the first rule, and the only one: %s", (_, change) => {
  const { differences, text } = changes(change(WANTED));
  expect(differences).toEqual(["chain raw PREROUTING has other rules"]);
  expect(text).toContain('-I PREROUTING 1 -m comment --comment "all" -j EN-A\n');
  expect(text.match(/-D PREROUTING/g) ?? []).toHaveLength(change(WANTED).split("-j EN-A").length - 1);
});

test("chains of founat's that nobody wants go, and with them what leads there", () => {
  const { text } = tableChanges(NO_TABLES, wanted, "EN-");
  expect(text).toBe(
    `*raw\n:EN-A - [0:0]\n:EN-B - [0:0]\n-D PREROUTING -m comment --comment "all" -j EN-A\n-X EN-A\n-X EN-B\nCOMMIT\n`,
  );
});
