import type { Family } from "@egress-nat/addresses";
import { hex } from "../backends/spelling.ts";
import { FounatError } from "../error.ts";

const DEFAULT_MARK_MASK = 0xff000000;

/** A mark on packets or on flows, and the bits that it may touch. */
export interface Mark {
  readonly value: number;
  readonly mask: number;
}

/** What leads a flow to the link that it began with, for as long as it lives: its conntrack mark. */
export interface Pin {
  readonly family: Family;
  /** Name of the link. */
  readonly link: string;
  readonly mark: Mark;
  readonly number: number;
}

/**
 * That of packets that must not meet a tunnel: all bits of the mask. Smaller values are those of {@link markOf}.
 *
 * @param mask the bits that may be written
 * @throws FounatError `invalid-config` when it is no 32-bit mask
 */
export function markOfReplies(mask: number = DEFAULT_MARK_MASK): Mark {
  if (!Number.isInteger(mask) || mask <= 0 || mask > 0xffffffff) {
    throw new FounatError("invalid-config", `markMask ${mask} is not a 32-bit mask with a bit set`);
  }
  return { value: mask, mask };
}

/** How many marks of {@link markOf} there are: neither none of the bits, nor all of them. */
export function marksOf(mask: number): number {
  return 2 ** bitsOf(mask).length - 2;
}

/** @param number from 1 to {@link marksOf}, spread over the bits of the mask */
export function markOf(number: number, mask: number): Mark {
  const value = bitsOf(mask).reduce((sum, bit, index) => sum + ((number >>> index) & 1) * bit, 0);
  return { value, mask };
}

/** As rules of `ip` select it. */
export function fwmark({ value, mask }: Mark): string {
  return `fwmark ${hex(value)}/${hex(mask)}`;
}

function bitsOf(mask: number): number[] {
  const bits: number[] = [];
  for (let bit = 1; bit <= 0xffffffff; bit *= 2) if ((mask & bit) !== 0) bits.push(bit);
  return bits;
}
