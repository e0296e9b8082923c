import { FounatError } from "../error.ts";

const DEFAULT_MARK_MASK = 0xff000000;

/** The mark on packets that must not meet a tunnel, and the bits that it may touch. */
export interface Mark {
  readonly value: number;
  readonly mask: number;
}

/**
 * All bits of the mask: smaller values are left for what one client may need many of.
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
