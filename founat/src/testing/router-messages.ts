/** What a host on the link can send to pass for a router: ICMP messages, in hexadecimal, without their checksums. */

import { parseAddress, parseCidr } from "../routing/cidr.ts";

export interface AdvertisedPrefix {
  /** CIDR. */
  readonly prefix: string;
  /** Of a prefix that is on the link, and good for addresses; else of a route by way of the sender. */
  readonly onLink: boolean;
}

const INFINITE = 0xffffffff;
/** RFC 4191: the preference `high` in its two bits of the flags. */
const HIGH = 0b01 << 3;

/** A router advertisement of high preference: RFC 4861, section 4.2; RFC 4191. */
export function routerAdvertisement(lifetimeSeconds: number, prefixes: readonly AdvertisedPrefix[]): string {
  const head = Buffer.alloc(16);
  head.set([134, 0, 0, 0, 64, HIGH]);
  head.writeUInt16BE(lifetimeSeconds, 6);
  return Buffer.concat([head, ...prefixes.map(prefixOption)]).toString("hex");
}

function prefixOption({ prefix, onLink }: AdvertisedPrefix): Buffer {
  const { length } = parseCidr(prefix);
  const address = bytes(prefix.split("/")[0] ?? "");
  const option = Buffer.alloc(onLink ? 16 : 8);
  if (onLink) {
    // Prefix information, for on-link determination and addresses; its lifetimes.
    option.set([3, 4, length, 0xc0]);
    option.writeUInt32BE(INFINITE, 4);
    option.writeUInt32BE(INFINITE, 8);
  } else {
    option.set([24, 3, length, HIGH]);
    option.writeUInt32BE(INFINITE, 4);
  }
  return Buffer.concat([option, address]);
}

/**
 * RFC 792.
 *
 * @param packet the IP packet that it speaks of, in hexadecimal
 */
export function redirect4(target: string, packet: string): string {
  return `05010000${bytes(target).toString("hex")}${packet}`;
}

/** RFC 4861, section 4.5. It quotes no packet: then it is for all that go to the destination. */
export function redirect6(target: string, destination: string): string {
  return `8900000000000000${bytes(target).toString("hex")}${bytes(destination).toString("hex")}`;
}

/** An empty datagram of the tunnel, in hexadecimal: what a redirect quotes. */
export function outerPacket(source: string, destination: string): string {
  return `4500001c0001000040110000${bytes(source).toString("hex")}${bytes(destination).toString("hex")}15b315b300080000`;
}

function bytes(address: string): Buffer {
  const { family, value } = parseAddress(address);
  return Buffer.from(value.toString(16).padStart(family === "ipv4" ? 8 : 32, "0"), "hex");
}
