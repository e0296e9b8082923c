/** How the guard keeps each flow with the gateway that it began with, as chains and maps of nft. */

import { isDeepStrictEqual } from "node:util";
import { FAMILIES } from "@egress-nat/addresses";
import type { Pin } from "../../client/mark.ts";
import type { Ways } from "../../client/policy.ts";
import { shortDigest } from "../../digest.ts";
import { hex } from "../spelling.ts";
import { chains, type NftSet, type NftTable, renderTable } from "./table.ts";

/** Whose flows go where: what changes with the gateways is in these, and in a chain for each gateway. */
export function waySets({ pins, choices, late, oneWay }: Ways): NftSet[] {
  const map = { kind: "map" } as const;
  const beginnings = choices.map(({ link, pins }) => `${link} : goto ${begin(pins)}`);
  const chosen = new Set(choices.flatMap((choice) => choice.pins));
  const hasChoice = new Set(choices.map(({ link }) => link));
  const picked = pins.filter((pin) => chosen.has(pin) || !hasChoice.has(pin.link));
  return [
    {
      ...{ kind: "set", name: "picked", type: "mark" },
      comment: "of gateways that flows begin with; of all, where they begin with none",
      elements: picked.map(({ mark }) => `${mark.value}`),
    },
    {
      ...{ ...map, name: "pinned", type: "ifname . mark : verdict" },
      comment: "flows of these gateways that the routes lead to the link that they began on",
      elements: oneWay ? [] : picked.map(({ link, mark }) => `${link} . ${mark.value} : accept`),
    },
    {
      ...{ ...map, name: "kept", type: "mark : verdict" },
      comment: "flows that have begun",
      elements: pins.map(({ mark, number }) => `${mark.value} : ${oneWay ? "accept" : `goto via_${number}`}`),
    },
    {
      ...{ ...map, name: "choices", type: "ifname : verdict" },
      comment: "where flows begin",
      elements: beginnings,
    },
    {
      ...{ ...map, name: "choices_ahead", typeof: true, type: "fib daddr . mark oifname : verdict" },
      comment: "where flows begin that are not routed yet",
      elements: beginnings,
    },
    {
      ...{ ...map, name: "choices_late", type: "nf_proto : verdict" },
      comment: "where flows begin that the routes still lead to a gateway which is gone",
      elements: FAMILIES.filter((family) => late[family].length > 0).map(
        (family) => `${family} : goto ${begin(late[family])}`,
      ),
    },
  ];
}

function begin(pins: readonly Pin[]): string {
  const [only, ...others] = pins;
  return others.length === 0 ? `take_${only?.number}` : spreadName(pins);
}

/** Named for its gateways: Egresses have no names that nft would take. */
function spreadName(pins: readonly Pin[]): string {
  return `spread_${shortDigest(pins.map(({ number }) => number).join())}`;
}

/**
 * What sends a flow to a gateway. Rule 1860 leads the mark of a packet to the link; where there is one way only, no packet
 * is marked, because the routes lead there or nowhere.
 */
export function ways(given: Ways): string {
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
  return [...(oneWay ? [] : led), ...begun, spreads(given)].join("");
}

/** For gateways that share the new flows. */
function spreads({ choices }: Ways): string {
  const shared = choices.filter(({ pins }) => pins.length > 1);
  const byName = new Map(shared.map(({ pins }) => [spreadName(pins), pins]));
  return Array.from(byName, ([name, pins]) => {
    const ways = pins.map(({ number }, index) => `${index} : goto take_${number}`).join(", ");
    return `
    # Each flow begins with any of these gateways.
    chain ${name} {
      # at random
      numgen random mod ${pins.length} vmap { ${ways} }
    }
  `;
  }).join("");
}

/**
 * One transaction that gives flows other ways, and leaves all else of the guard as it is. It fails where a gateway's
 * chains are not there.
 *
 * @param former the ways that they have: what of these stays is not written
 */
export function steeringScript(
  table: Pick<NftTable, "name" | "comment">,
  current: Ways,
  former: Ways,
): string {
  const sets = notAmong(waySets(former), waySets(current));
  const [before, after] = [chains(spreads(former)), chains(spreads(current))];
  const [gone, added] = [notAmong(after, before), notAmong(before, after)];
  return [
    ...sets.map(({ kind, name }) => `flush ${kind} inet ${table.name} ${name}`),
    ...gone.map(({ name }) => `delete chain inet ${table.name} ${name}`),
    ...added.flatMap(({ name }) => [
      `add chain inet ${table.name} ${name}`,
      `flush chain inet ${table.name} ${name}`,
    ]),
    renderTable({ ...table, sets, chains: added }),
  ].join("\n");
}

function notAmong<T extends { readonly name: string }>(others: readonly T[], these: readonly T[]): T[] {
  const byName = new Map(others.map((other) => [other.name, other]));
  return these.filter((each) => !isDeepStrictEqual(each, byName.get(each.name)));
}
