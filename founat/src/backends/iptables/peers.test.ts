import { expect, test } from "vitest";
import { PeerBook } from "../../gateway/peers.ts";
import { peerDifferences, peerLines, peersOf } from "./peers.ts";
import { parseSets } from "./sets.ts";

const clients = [{ id: "uid-1", addresses: ["10.1.0.2", "FD00:1::2"] }];
/** As ipset of Debian 12 prints them. */
const SAVED = `create en-clients4 hash:ip family inet hashsize 1024 maxelem 1048576 comment skbinfo bucketsize 12 initval 0x1
add en-clients4 10.1.0.2 comment "uid-1" skbmark 0x1
create en-inner4 hash:ip,mark family inet markmask 0xffffffff hashsize 1024 maxelem 1048576 bucketsize 12 initval 0x2
add en-inner4 10.1.0.2,0x00000001
create en-clients6 hash:ip family inet6 hashsize 1024 maxelem 1048576 comment skbinfo bucketsize 12 initval 0x3
add en-clients6 fd00:1::2 comment "uid-1" skbmark 0x1
create en-inner6 hash:ip,mark family inet6 markmask 0xffffffff hashsize 1024 maxelem 1048576 bucketsize 12 initval 0x4
add en-inner6 fd00:1::2,0x00000001
`;
const peers = peersOf(parseSets(SAVED));

test("a client's addresses share one mark; each is known inside before it is outside", () => {
  expect(peerLines(new PeerBook().sync(clients))).toEqual([
    "add en-inner4 10.1.0.2,0x1",
    'add en-clients4 10.1.0.2 skbmark 0x1 comment "uid-1"',
    "add en-inner6 fd00:1::2,0x1",
    'add en-clients6 fd00:1::2 skbmark 0x1 comment "uid-1"',
  ]);
});

test("a restarted gateway knows its clients, and a client that goes leaves both sets", () => {
  const book = new PeerBook(peers);
  expect(book.sync(clients)).toEqual({ put: new Map(), removed: new Map() });
  expect(peerLines(book.sync([]))).toEqual([
    "del en-inner4 10.1.0.2,0x1",
    "del en-clients4 10.1.0.2",
    "del en-inner6 fd00:1::2,0x1",
    "del en-clients6 fd00:1::2",
  ]);
});

test.each([
  [
    "an address that is missing outside",
    /add en-clients4 .*\n/,
    "",
    ['add en-clients4 10.1.0.2 skbmark 0x1 comment "uid-1"'],
    [],
  ],
  ["an address that is missing inside", /add en-inner6 .*\n/, "", ["add en-inner6 fd00:1::2,0x1"], []],
  [
    "another mark",
    "skbmark 0x1",
    "skbmark 0x9/0xff",
    ["del en-clients4 10.1.0.2", 'add en-clients4 10.1.0.2 skbmark 0x1 comment "uid-1"'],
    [],
  ],
  [
    "a stranger",
    "add en-clients4",
    "add en-clients4 10.1.0.9 skbmark 0x1\nadd en-clients4",
    ["del en-clients4 10.1.0.9"],
    ["10.1.0.9"],
  ],
])("each set is compared by itself: %s", (_, text, replacement, lines, strangers) => {
  const found = peerDifferences(peers, parseSets(SAVED.replace(text, replacement)));
  expect(found.differences).toHaveLength(1);
  expect(found.steps).toEqual([
    { file: "ipset", args: ["-exist", "restore"], input: `${lines.join("\n")}\n` },
  ]);
  expect(found.strangers).toEqual(strangers);
});

test("clients that are as they should be need nothing", () => {
  expect(peerDifferences(peers, parseSets(SAVED))).toEqual({ differences: [], steps: [], strangers: [] });
});
