/** How the guard keeps each flow with the gateway that it began with, as chains and maps of nft. */

import { FAMILIES } from "@egress-nat/addresses";
import type { Pin } from "../../client/mark.ts";
import type { Ways } from "../../client/policy.ts";
import { hex } from "../spelling.ts";
import {
  accept,
  type Entry,
  goto,
  hostNumber,
  ifname,
  protocol,
  spell,
  type Verdict,
} from "./netlink/entry.ts";
import { chains, type NftChain, type NftRule, type NftSet } from "./table.ts";

/** A set or map that says whose flows go where. */
export interface WaySet extends NftSet {
  readonly entries: readonly Entry[];
}

/** Whose flows go where: what changes with the gateways is in these, and in the chains of {@link spreads}. */
export function waySets(given: Ways): WaySet[] {
  const { pins, choices, late, oneWay } = given;
  const map = { kind: "map" } as const;
  const begin = beginnings(given);
  const chosen = new Set(choices.flatMap((choice) => choice.pins));
  const hasChoice = new Set(choices.map(({ link }) => link));
  const picked = pins.filter((pin) => chosen.has(pin) || !hasChoice.has(pin.link));
  const choiceOf = choices.map(({ link, pins }) => ({ key: [ifname(link)], verdict: begin(pins) }));
  const sets: Omit<WaySet, "elements">[] = [
    {
      ...{ kind: "set", name: "picked", type: "mark" },
      comment: "of gateways that flows begin with; of all, where they begin with none",
      entries: picked.map(({ mark }) => ({ key: [hostNumber(mark.value)] })),
    },
    {
      ...{ ...map, name: "pinned", type: "ifname . mark : verdict" },
      comment: "flows of these gateways that the routes lead to the link that they began on",
      entries: oneWay
        ? []
        : picked.map(({ link, mark }) => ({ key: [ifname(link), hostNumber(mark.value)], verdict: accept })),
    },
    {
      ...{ ...map, name: "kept", type: "mark : verdict" },
      comment: "flows that have begun",
      entries: pins.map((pin) => ({
        key: [hostNumber(pin.mark.value)],
        verdict: oneWay ? accept : goto(`via_${pin.number}`),
      })),
    },
    {
      ...{ ...map, name: "choices", type: "ifname : verdict" },
      comment: "where flows begin",
      entries: choiceOf,
    },
    {
      ...{ ...map, name: "choices_ahead", typeof: true, type: "fib daddr . mark oifname : verdict" },
      comment: "where flows begin that are not routed yet",
      entries: choiceOf,
    },
    {
      ...{ ...map, name: "choices_late", type: "nf_proto : verdict" },
      comment: "where flows begin that the routes still lead to a gateway which is gone",
      entries: FAMILIES.filter((family) => late[family].length > 0).map((family) => ({
        key: [protocol(family)],
        verdict: begin(late[family]),
      })),
    },
  ];
  return sets.map((set) => ({ ...set, elements: set.entries.map(spell) }));
}

/** What differs where ways do. */
export function wayKey({ pins, choices, late, oneWay }: Ways): string {
  return [
    ...[oneWay, pins[0]?.mark.mask],
    ...pins.map(({ link, number }) => `${link} ${number}`),
    ...choices.map(({ link, pins }) => `${link} to ${numbersOf(pins)}`),
    ...FAMILIES.map((family) => `${family} to ${numbersOf(late[family])}`),
  ].join();
}

/** Gateways that share new flows. */
export interface Spread {
  /** Of the chain. */
  readonly name: string;
  readonly rule: NftRule;
  /** What the rule chooses from. */
  readonly ways: readonly Verdict[];
}

export function spreads({ choices }: Pick<Ways, "choices">): Spread[] {
  return Array.from(spreadNames(choices), ([, { name, pins }]) => {
    const ways = pins.map(({ number }) => goto(`take_${number}`));
    const spelled = ways.map((way, index) => `${index} : ${way.text}`).join(", ");
    const text = `numgen random mod ${pins.length} vmap { ${spelled} }`;
    return { name, rule: { text, comment: "at random" }, ways };
  });
}

/** The verdict by which flows begin with some gateways. */
function beginnings({ choices }: Ways): (pins: readonly Pin[]) => Verdict {
  const names = spreadNames(choices);
  return (pins) => goto(names.get(numbersOf(pins))?.name ?? `take_${pins[0]?.number}`);
}

/**
 * Named for the first link that is spread so, because Egresses have no names that nft would take, and what refers to the
 * chain stays as it is where the gateways are others. A gateway is of one Egress, so that a name does not come to mean
 * those of another one.
 */
function spreadNames(choices: Ways["choices"]): Map<string, { name: string; pins: readonly Pin[] }> {
  const names = new Map<string, { name: string; pins: readonly Pin[] }>();
  for (const { link, pins } of choices) {
    const numbers = numbersOf(pins);
    if (pins.length > 1 && !names.has(numbers)) names.set(numbers, { name: `spread_${link}`, pins });
  }
  return names;
}

/** Most links have the same list. */
const knownNumbers = new WeakMap<readonly Pin[], string>();

function numbersOf(pins: readonly Pin[]): string {
  const numbers = knownNumbers.get(pins) ?? pins.map(({ number }) => number).join();
  knownNumbers.set(pins, numbers);
  return numbers;
}

/**
 * What sends a flow to a gateway. Rule 1860 leads the mark of a packet to the link; where there is one way only, no packet
 * is marked, because the routes lead there or nowhere.
 */
export function ways(given: Ways): NftChain[] {
  const { pins, oneWay } = given;
  const [mask = 0] = pins.map(({ mark }) => mark.mask);
  const set = (kind: "meta" | "ct", value: number) =>
    `${kind} mark set ${kind} mark and ${hex(~mask >>> 0)} or ${hex(value)}`;
  const led = pins.map(
    ({ number, mark: { value } }) => `
    # To a gateway, whatever its routes say.
    chain via_${number} {
      # by its mark
      ${set("meta", value)} accept
    }
  `,
  );
  const begun = pins.map(
    ({ number, mark: { value } }) => `
    # A flow begins with a gateway, and stays.
    chain take_${number} {
      # with its mark
      ${set("ct", value)} ${oneWay ? "accept" : `goto via_${number}`}
    }
  `,
  );
  const perGateway = chains([...(oneWay ? [] : led), ...begun].join(""));
  return [...perGateway, ...spreads(given).map(spreadChain)];
}

function spreadChain({ name, rule }: Spread): NftChain {
  return { name, comment: "Each flow begins with any of these gateways.", rules: [rule] };
}
