/** How flows get other ways while all else of the guard stays as it is. */

import type { Ways } from "../../client/policy.ts";
import { remembering } from "../../digest.ts";
import type { PerlProgram } from "../../kernel/perl.ts";
import { CLIENT_TABLE } from "./guard-table.ts";
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
  readonly current: Ways;
  /** The ways that flows have: what of these stays is not written. */
  readonly former: Ways;
}

/** Clients of one Egress are mostly steered alike, one right after the other: more than there are Egresses on a node. */
const MOST_REMEMBERED = 64;

/**
 * One transaction that gives flows other ways, without the rest of the guard, because all clients of a node wait for it. It
 * fails where something that it changes is not there, or a gateway's chains are not.
 *
 * @returns none where all stays
 */
export const guardSteering = remembering(
  ({ current, former }: WayChange): PerlProgram[] => {
    const [before, after] = [waySets(former), waySets(current)];
    const [had, has] = [spreads(former), spreads(current)];
    const messages = [
      ...differing(before, after, (set, gone) => deleteElements(CLIENT_TABLE, set, gone)),
      ...others(had, has, nameOf).map(({ name }) => deleteChain(CLIENT_TABLE, name)),
      ...others(has, had, nameOf).map(({ name }) => addChain(CLIENT_TABLE, name)),
      ...others(has, had, ruleOf).flatMap((spread, index) => spreading(spread, index + 1)),
      ...differing(after, before, (set, added) => addElements(CLIENT_TABLE, set, added)),
    ];
    return messages.length === 0 ? [] : [transaction(messages)];
  },
  {
    keyOf: ({ current, former }) => [wayKey(former), wayKey(current)].join("\n"),
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

function spreading({ name, rule, ways }: Spread, id: number): Message[] {
  const comment = kernelComment(rule);
  return [flushChain(CLIENT_TABLE, name), ...addRandomWay(CLIENT_TABLE, name, { id, ways, comment })];
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
