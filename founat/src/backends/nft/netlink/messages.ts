/** Messages of nf_tables (linux/netfilter/nf_tables.h), about tables of family inet. */

import { attribute, big32, host32, item, nested, text } from "./bytes.ts";
import { type Entry, encode, hostNumber, type Verdict } from "./entry.ts";

/** One change. */
export interface Message {
  readonly type: number;
  /** What it is besides a request. */
  readonly flags: number;
  readonly attributes: readonly Buffer[];
}

const MESSAGE = {
  ...{ newChain: 3, delChain: 5, newRule: 6, delRule: 8 },
  ...{ newSet: 9, newElements: 12, delElements: 14 },
} as const;
const CREATE = 0x400;
const APPEND = 0x800;

const CHAIN = { table: 1, name: 3 } as const;
const RULE = { table: 1, chain: 2, expressions: 4, userdata: 7 } as const;
const SET = {
  ...{ table: 1, name: 2, flags: 3, keyType: 4, keyLength: 5, dataType: 6, dataLength: 7 },
  ...{ description: 9, id: 10, userdata: 13 },
} as const;
/** NFTA_SET_DESC_SIZE */
const SIZE = 1;
const ELEMENTS = { table: 1, set: 2, elements: 3, id: 4 } as const;
const EXPRESSION = { name: 1, data: 2 } as const;
const NUMGEN = { register: 1, modulus: 2, type: 3 } as const;
const LOOKUP = { set: 1, source: 2, destination: 3, id: 4 } as const;

/** NFT_SET_ANONYMOUS, NFT_SET_CONSTANT and NFT_SET_MAP */
const ANONYMOUS_MAP = 1 | 2 | 8;
/** nft's own number of it (TYPE_INTEGER), by which it prints keys. */
const INTEGER = 4;
/** NFT_DATA_VERDICT */
const OF_VERDICTS = 0xffffff00;
const NUMBER_BYTES = 4;
/** NFT_NG_RANDOM */
const RANDOM = 1;
const VERDICT_REGISTER = 0;
const FIRST_REGISTER = 1;
/** What nft keeps with a rule, and with a set, to print it (libnftnl/udata.h). */
const [RULE_COMMENT, KEY_BYTE_ORDER] = [0, 0];
const HOST_ORDER = 1;

export function addChain(table: string, name: string): Message {
  return message(
    MESSAGE.newChain,
    CREATE,
    attribute(CHAIN.table, text(table)),
    attribute(CHAIN.name, text(name)),
  );
}

/** Its rules go with it. */
export function deleteChain(table: string, name: string): Message {
  return message(MESSAGE.delChain, 0, attribute(CHAIN.table, text(table)), attribute(CHAIN.name, text(name)));
}

export function flushChain(table: string, name: string): Message {
  return message(MESSAGE.delRule, 0, attribute(RULE.table, text(table)), attribute(RULE.chain, text(name)));
}

/** Of a map the key is enough. */
export function deleteElements(table: string, set: string, entries: readonly Entry[]): Message {
  const keys = entries.map(({ key }) => ({ key }));
  return message(MESSAGE.delElements, 0, ...elements(table, set, keys));
}

export function addElements(table: string, set: string, entries: readonly Entry[]): Message {
  return message(MESSAGE.newElements, CREATE, ...elements(table, set, entries));
}

/**
 * A rule that sends each packet one of some ways, at random: `numgen random mod N vmap { … }`.
 *
 * @param id of the map, which has no name: another one than that of any other in the transaction
 */
export function addRandomWay(
  table: string,
  chain: string,
  { id, ways, comment }: { readonly id: number; readonly ways: readonly Verdict[]; readonly comment: string },
): Message[] {
  const count = big32(ways.length);
  const map = (nameType: number, idType: number) => [
    attribute(nameType, text("__map%d")),
    attribute(idType, big32(id)),
  ];
  const entries = ways.map((verdict, index) => ({ key: [hostNumber(index)], verdict }));
  const expressions = [
    expression("numgen", [
      attribute(NUMGEN.register, big32(FIRST_REGISTER)),
      attribute(NUMGEN.modulus, count),
      attribute(NUMGEN.type, big32(RANDOM)),
    ]),
    expression("lookup", [
      ...map(LOOKUP.set, LOOKUP.id),
      attribute(LOOKUP.source, big32(FIRST_REGISTER)),
      attribute(LOOKUP.destination, big32(VERDICT_REGISTER)),
    ]),
  ];
  return [
    message(
      MESSAGE.newSet,
      CREATE,
      attribute(SET.table, text(table)),
      ...map(SET.name, SET.id),
      attribute(SET.flags, big32(ANONYMOUS_MAP)),
      attribute(SET.keyType, big32(INTEGER)),
      attribute(SET.keyLength, big32(NUMBER_BYTES)),
      attribute(SET.dataType, big32(OF_VERDICTS)),
      attribute(SET.dataLength, big32(0)),
      nested(SET.description, [attribute(SIZE, count)]),
      attribute(SET.userdata, userdata(KEY_BYTE_ORDER, host32(HOST_ORDER))),
    ),
    message(
      MESSAGE.newElements,
      CREATE,
      attribute(ELEMENTS.table, text(table)),
      ...map(ELEMENTS.set, ELEMENTS.id),
      nested(ELEMENTS.elements, entries.map(encode)),
    ),
    message(
      MESSAGE.newRule,
      CREATE | APPEND,
      attribute(RULE.table, text(table)),
      attribute(RULE.chain, text(chain)),
      nested(RULE.expressions, expressions),
      attribute(RULE.userdata, userdata(RULE_COMMENT, text(comment))),
    ),
  ];
}

function message(type: number, flags: number, ...attributes: readonly Buffer[]): Message {
  return { type, flags, attributes };
}

function elements(table: string, set: string, entries: readonly Entry[]): Buffer[] {
  return [
    attribute(ELEMENTS.table, text(table)),
    attribute(ELEMENTS.set, text(set)),
    nested(ELEMENTS.elements, entries.map(encode)),
  ];
}

function expression(name: string, attributes: readonly Buffer[]): Buffer {
  return item([attribute(EXPRESSION.name, text(name)), nested(EXPRESSION.data, attributes)]);
}

function userdata(type: number, value: Buffer): Buffer {
  return Buffer.concat([Buffer.of(type, value.length), value]);
}
