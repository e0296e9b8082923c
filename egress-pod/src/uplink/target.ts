/** Whether one address that a gateway asks again and again answers. */

/** In a row, half a second each. */
const MISSES_TO_BE_SILENT = 3;

/** In a row: where every other request is lost, a gateway is not to come and go. */
const ANSWERS_TO_BE_HEARD = 3;

export interface Target {
  readonly isSilent: boolean;
  /** Of the last request; undefined of an address that has not been asked yet. */
  readonly answered: boolean | undefined;
  /** How many in a row speak against {@link isSilent}. */
  readonly contrary: number;
}

/** Nothing is said against an address that has not been asked yet, and nothing for it. */
export const NEW_TARGET: Target = { isSilent: false, answered: undefined, contrary: 0 };

export function afterRequest({ isSilent, contrary }: Target, answered: boolean): Target {
  if (answered !== isSilent) return { isSilent, answered, contrary: 0 };
  const limit = isSilent ? ANSWERS_TO_BE_HEARD : MISSES_TO_BE_SILENT;
  if (contrary + 1 < limit) return { isSilent, answered, contrary: contrary + 1 };
  return { isSilent: !isSilent, answered, contrary: 0 };
}

/** What a gateway says of its way out in one family; undefined: something else at any moment. */
export type Way = "works" | "silent" | undefined;

/**
 * One address that answers is enough. While some requests are answered and others are not nothing is said: gateways that lose
 * their way at the same time, or get it back, would vouch for it to each other.
 *
 * @param targets of one family
 */
export function wayOf(targets: readonly Target[]): Way {
  if (targets.some(({ isSilent, answered }) => !isSilent && answered)) return "works";
  return targets.length > 0 && targets.every(({ isSilent, answered }) => isSilent && !answered)
    ? "silent"
    : undefined;
}
