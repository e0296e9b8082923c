/** Attributes of netlink(7) and their values. Headers are in the byte order of this machine. */

/** That an attribute holds attributes (linux/netlink.h). */
const NESTED = 0x8000;
const HEADER_BYTES = 4;
const ALIGNMENT = 4;

export function attribute(type: number, value: Buffer): Buffer {
  return padded(
    Buffer.concat([Buffer.from(Uint16Array.of(HEADER_BYTES + value.length, type).buffer), value]),
  );
}

/** @throws RangeError where it takes more than 64 KiB */
export function nested(type: number, attributes: readonly Buffer[]): Buffer {
  const value = Buffer.concat(attributes);
  if (value.length > 0xffff - HEADER_BYTES) throw new RangeError(`${value.length} bytes are too many`);
  return attribute(type | NESTED, value);
}

/** One of a list (NFTA_LIST_ELEM). */
export function item(attributes: readonly Buffer[]): Buffer {
  return nested(1, attributes);
}

/** As far as the kernel reads the next one. */
export function padded(bytes: Buffer): Buffer {
  const missing = -bytes.length & (ALIGNMENT - 1);
  return missing === 0 ? bytes : Buffer.concat([bytes], bytes.length + missing);
}

export function text(value: string): Buffer {
  return Buffer.from(`${value}\0`);
}

/** A number in the order of the network, as in most attributes. */
export function big32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** A number in the order of this machine, as in marks. */
export function host32(value: number): Buffer {
  return Buffer.from(Uint32Array.of(value).buffer);
}
