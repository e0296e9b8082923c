import type { Family } from "@egress-nat/addresses";
import fc from "fast-check";

interface SpelledAddress {
  readonly family: Family;
  readonly value: bigint;
  readonly spellings: readonly string[];
}

const octet = fc.nat(255);

const ipv4 = fc.tuple(octet, octet, octet, octet).map((octets): SpelledAddress => {
  const value = octets.reduce((number, one) => number * 256n + BigInt(one), 0n);
  return { family: "ipv4", value, spellings: [octets.join(".")] };
});

/** Zeros, so that there is something to leave out, and the mark of IPv4-mapped addresses are more frequent than others. */
const groups = fc.oneof(
  fc.array(fc.oneof(fc.constant(0), fc.constant(0xffff), fc.nat(0xffff)), { minLength: 8, maxLength: 8 }),
  fc.tuple(fc.constantFrom(0, 0xffff), fc.nat(0xffff), fc.nat(0xffff)).map((end) => [0, 0, 0, 0, 0, ...end]),
);

const ipv6 = fc.tuple(groups, fc.nat(7), fc.nat(7)).map(([words, from, to]): SpelledAddress => {
  const value = words.reduce((number, word) => number * 65536n + BigInt(word), 0n);
  const texts = words.map((word) => word.toString(16));
  const full = texts.join(":");
  const padded = texts.map((text) => text.padStart(4, "0")).join(":");
  const [high = 0, low = 0] = words.slice(6);
  const dotted = [...texts.slice(0, 6), [high >> 8, high & 255, low >> 8, low & 255].join(".")].join(":");
  const zeros = words.slice(from, to + 1);
  const short = `${texts.slice(0, from).join(":")}::${texts.slice(to + 1).join(":")}`;
  const isShort = zeros.length > 0 && zeros.every((word) => word === 0);
  return {
    family: "ipv6",
    value,
    spellings: [full, full.toUpperCase(), padded, dotted, ...(isShort ? [short] : [])],
  };
});

export const anyAddress: fc.Arbitrary<SpelledAddress> = fc.oneof(ipv4, ipv6);

/** A spelling of an address, or a text that is hardly different from one. */
export const nearlyAnAddress: fc.Arbitrary<string> = fc
  .tuple(
    anyAddress.chain(({ spellings }) => fc.constantFrom(...spellings)),
    fc.oneof({ weight: 1, arbitrary: fc.constant("") }, fc.stringMatching(/^[0-9a-fA-F:.% g/]{0,3}$/)),
    fc.nat(40),
    fc.nat(2),
  )
  .map(
    ([text, noise, place, left]) => text.slice(0, place) + noise + text.slice(place + left * noise.length),
  );

const nearlyALength = fc.oneof(
  fc.nat(140).map(String),
  fc.constantFrom("", "08", "1e1", "-1", "24 ", "24\n"),
);

/** A spelling of a network, host bits and all, or a text that is hardly different from one. */
export const nearlyACidr: fc.Arbitrary<string> = fc
  .tuple(nearlyAnAddress, nearlyALength)
  .map((parts) => parts.join("/"));
