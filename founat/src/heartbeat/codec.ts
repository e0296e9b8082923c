/**
 * The heartbeat's datagrams. A request names keys and leaves room for their values; a response fills the room in, so
 * that it is exactly as long as the request and nobody can be flooded with answers to small forged questions.
 *
 *     0  magic "EGHB"        4 bytes
 *     4  version 1           1 byte
 *     5  type                1 byte: 1 request, 2 response
 *     6  number of entries   2 bytes
 *     8  nonce              16 bytes, random, echoed
 *    24  entries: key length (1 byte), value length (1 byte; 255: none), key, 20 bytes of room for the value
 *
 * Keys and values are bytes. As strings they have one character for each, U+0000 to U+00FF (Latin-1): any other decoding
 * (UTF-8) changes bytes that it does not understand, and with them the length.
 */

const MAGIC = 0x45474842;
const VERSION = 1;
const REQUEST = 1;
const RESPONSE = 2;
const HEADER_BYTES = 24;
const NO_VALUE = 255;
const ENCODING = "latin1";

export const NONCE_BYTES = 16;

/** The longest value: a 64-bit number in decimal. */
const MAX_VALUE_BYTES = 20;

/** The longest key: far more than a UID's 36 characters. */
const MAX_KEY_BYTES = 128;

/** What a datagram may hold on a path of the smallest MTU of IPv6 (1280), headers taken off. */
export const MAX_DATAGRAM_BYTES = 1200;

export interface Request {
  readonly nonce: Uint8Array;
  readonly keys: readonly string[];
}

export interface Response {
  readonly nonce: Uint8Array;
  /** The keys that have a value. */
  readonly values: ReadonlyMap<string, string>;
}

/** Splits keys so that each group fits one request. */
export function groupKeys(keys: Iterable<string>): string[][] {
  const groups: string[][] = [[]];
  let size = HEADER_BYTES;
  for (const key of keys) {
    const entrySize = 2 + key.length + MAX_VALUE_BYTES;
    if (size + entrySize > MAX_DATAGRAM_BYTES) {
      groups.push([]);
      size = HEADER_BYTES;
    }
    groups.at(-1)?.push(key);
    size += entrySize;
  }
  return groups;
}

/**
 * @param request its keys must fit one datagram ({@link groupKeys}) and {@link MAX_KEY_BYTES} each, and consist of bytes
 * @throws RangeError when they do not
 */
export function encodeRequest(request: Request): Uint8Array {
  return encode(REQUEST, request, () => undefined);
}

/** The answer to `request`: as long as the request itself. A value that is too long counts as none. */
export function encodeResponse(request: Request, value: (key: string) => string | undefined): Uint8Array {
  return encode(RESPONSE, request, value);
}

/** @returns undefined for anything that is not a well-formed request */
export function decodeRequest(datagram: Uint8Array): Request | undefined {
  const decoded = decode(datagram, REQUEST);
  return decoded && { nonce: decoded.nonce, keys: decoded.entries.map(([key]) => key) };
}

/** @returns undefined for anything that is not a well-formed response */
export function decodeResponse(datagram: Uint8Array): Response | undefined {
  const decoded = decode(datagram, RESPONSE);
  if (decoded === undefined) return undefined;
  const values = decoded.entries.flatMap(([key, value]): [string, string][] =>
    value === undefined ? [] : [[key, value]],
  );
  return { nonce: decoded.nonce, values: new Map(values) };
}

function encode(type: number, { nonce, keys }: Request, value: (key: string) => string | undefined) {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(MAGIC, 0);
  header.writeUInt8(VERSION, 4);
  header.writeUInt8(type, 5);
  header.writeUInt16BE(keys.length, 6);
  header.set(nonce, 8);
  return Buffer.concat([header, ...keys.map((key) => encodeEntry(key, value(key)))]);
}

function encodeEntry(key: string, value: string | undefined): Uint8Array {
  const keyBytes = Buffer.from(key, ENCODING);
  const valueBytes = Buffer.from(value ?? "", ENCODING);
  if (keyBytes.length > MAX_KEY_BYTES) throw new RangeError(`heartbeat key of ${keyBytes.length} bytes`);
  if (keyBytes.toString(ENCODING) !== key) throw new RangeError(`heartbeat key "${key}" is not of bytes`);
  const hasValue = value !== undefined && valueBytes.length <= MAX_VALUE_BYTES;
  const room = Buffer.alloc(MAX_VALUE_BYTES);
  if (hasValue) room.set(valueBytes);
  return Buffer.concat([Buffer.of(keyBytes.length, hasValue ? valueBytes.length : NO_VALUE), keyBytes, room]);
}

function decode(datagram: Uint8Array, type: number) {
  const buffer = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  if (buffer.length < HEADER_BYTES || buffer.length > MAX_DATAGRAM_BYTES) return undefined;
  if (buffer.readUInt32BE(0) !== MAGIC || buffer[4] !== VERSION || buffer[5] !== type) return undefined;
  const entries: (readonly [key: string, value: string | undefined])[] = [];
  let at = HEADER_BYTES;
  for (let left = buffer.readUInt16BE(6); left > 0; left--) {
    const keyLength = buffer[at];
    const valueLength = buffer[at + 1];
    if (keyLength === undefined || valueLength === undefined || keyLength > MAX_KEY_BYTES) return undefined;
    const valueAt = at + 2 + keyLength;
    at = valueAt + MAX_VALUE_BYTES;
    if (at > buffer.length || (valueLength > MAX_VALUE_BYTES && valueLength !== NO_VALUE)) return undefined;
    const key = buffer.toString(ENCODING, valueAt - keyLength, valueAt);
    entries.push([
      key,
      valueLength === NO_VALUE ? undefined : buffer.toString(ENCODING, valueAt, valueAt + valueLength),
    ]);
  }
  return at === buffer.length ? { nonce: buffer.subarray(8, 8 + NONCE_BYTES), entries } : undefined;
}
