/** How flows get other ways while all else of the guard stays as it is. */

import type { Ways } from "../../client/policy.ts";
import { remembering } from "../../digest.ts";
import type { PerlProgram } from "../../kernel/perl.ts";
import { type Spread, spreads, type WaySet, wayKey, waySets } from "./guard-ways.ts";
import type { Entry } from "./netlink/entry.ts";
import {
  addChain,
  addElements,
  addRandomWay,
  deleteChain,
  deleteElements,
  flushChain,
  type Message,
} from "./netlink/messages.ts";
import { transaction } from "./netlink/transaction.ts";
import { kernelComment } from "./table.ts";

interface WayChange {
  readonly table: string;
  readonly current: Ways;
  /** The ways that flows have: what of these stays is not written. */
  readonly former: Ways;
}

/** Clients of one Egress are mostly steered alike, one right after the other: more than there are Egresses on a node. */
const MOST_REMEMBERED = 64;

/**
 * One transaction that gives flows other ways. It fails where something that it changes is not there, or a gateway's chains
 * are not.
 *
 * @returns none where all stays
 */
export const steering = remembering(
  ({ table, current, former }: WayChange): PerlProgram[] => {
    const [before, after] = [waySets(former), waySets(current)];
    const [had, has] = [spreads(former), spreads(current)];
    const messages = [
      ...differing(before, after, (set, gone) => deleteElements(table, set, gone)),
      ...others(had, has, nameOf).map((spread) => deleteChain(table, nameOf(spread))),
      ...others(has, had, nameOf).map((spread) => addChain(table, nameOf(spread))),
      ...others(has, had, ruleOf).flatMap((spread, index) => spreading(table, spread, index + 1)),
      ...differing(after, before, (set, added) => addElements(table, set, added)),
    ];
    return messages.length === 0 ? [] : [transaction(messages)];
  },
  {
    keyOf: ({ table, current, former }) => [table, wayKey(former), wayKey(current)].join("\n"),
    most: MOST_REMEMBERED,
  },
);

/** Writes what of each of these sets is not in that of the same place. */
function differing(
  these: readonly WaySet[],
  those: readonly WaySet[],
  write: (set: string, entries: readonly Entry[]) => Message,
): Message[] {
  return these.flatMap(({ name, entries, elements }, index) => {
    const held = new Set(those[index]?.elements);
    const rest = entries.filter((_, at) => !held.has(elements[at] ?? ""));
    return rest.length === 0 ? [] : [write(name, rest)];
  });
}

function spreading(table: string, { name, rule, ways }: Spread, id: number): Message[] {
  const comment = kernelComment(rule);
  return [flushChain(table, name), ...addRandomWay(table, name, { id, ways, comment })];
}

function nameOf({ name }: Spread): string {
  return name;
}

function ruleOf({ name, rule }: Spread): string {
  return `${name} ${rule.text}`;
}

/** Those of these that are not among those. */
function others<T>(these: readonly T[], those: readonly T[], textOf: (each: T) => string): T[] {
  const texts = new Set(those.map(textOf));
  return these.filter((each) => !texts.has(textOf(each)));
}
