/** What sets and maps hold, as nft spells it and as the kernel has it. */

import type { Family } from "@egress-nat/addresses";
import { attribute, big32, host32, item, nested, padded, text } from "./bytes.ts";

/** One field of a key. */
export interface Field {
  readonly text: string;
  readonly bytes: () => Buffer;
}

/** What becomes of a packet. */
export interface Verdict {
  readonly text: string;
  /** Attributes of NFTA_DATA_VERDICT. */
  readonly attributes: () => readonly Buffer[];
}

export interface Entry {
  readonly key: readonly Field[];
  /** Of a map. */
  readonly verdict?: Verdict;
}

const IFNAME_BYTES = 16;
/** NFPROTO_IPV4 and NFPROTO_IPV6 (linux/netfilter.h). */
const PROTOCOL: Readonly<Record<Family, number>> = { ipv4: 2, ipv6: 10 };
const ACCEPT = 1;
/** NFT_GOTO */
const GOTO = -4;
const VERDICT = { code: 1, chain: 2 } as const;
const ELEMENT = { key: 1, data: 2 } as const;
const DATA = { value: 1, verdict: 2 } as const;

export function ifname(name: string): Field {
  return { text: name, bytes: () => Buffer.concat([Buffer.from(name)], IFNAME_BYTES) };
}

/** Such as a mark. */
export function hostNumber(value: number): Field {
  return { text: `${value}`, bytes: () => host32(value) };
}

export function protocol(family: Family): Field {
  return { text: family, bytes: () => Buffer.of(PROTOCOL[family]) };
}

export const accept: Verdict = {
  text: "accept",
  attributes: () => [attribute(VERDICT.code, big32(ACCEPT))],
};

export function goto(chain: string): Verdict {
  return {
    text: `goto ${chain}`,
    attributes: () => [attribute(VERDICT.code, big32(GOTO)), attribute(VERDICT.chain, text(chain))],
  };
}

/** As nft prints it. */
export function spell({ key, verdict }: Entry): string {
  const fields = key.map((field) => field.text).join(" . ");
  return verdict === undefined ? fields : `${fields} : ${verdict.text}`;
}

/** As an attribute of NFTA_SET_ELEM_LIST_ELEMENTS. */
export function encode({ key, verdict }: Entry): Buffer {
  const fields = key.map(({ bytes }) => bytes());
  const value = Buffer.concat(fields.length > 1 ? fields.map(padded) : fields);
  return item([
    nested(ELEMENT.key, [attribute(DATA.value, value)]),
    ...(verdict ? [nested(ELEMENT.data, [nested(DATA.verdict, verdict.attributes())])] : []),
  ]);
}
