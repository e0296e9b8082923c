/** Whether one address that a gateway asks again and again answers. */

/** In a row, half a second each. */
const MISSES_TO_BE_SILENT = 3;

/** In a row: where every other request is lost, a gateway is not to come and go. */
const ANSWERS_TO_BE_HEARD = 3;

export interface Target {
  readonly isSilent: boolean;
  /** In a row, of those that speak against {@link isSilent}. */
  readonly contrary: number;
}

/** Nothing is said against an address that has not been asked yet. */
export const NEW_TARGET: Target = { isSilent: false, contrary: 0 };

export function afterRequest({ isSilent, contrary }: Target, answered: boolean): Target {
  if (answered !== isSilent) return { isSilent, contrary: 0 };
  const limit = isSilent ? ANSWERS_TO_BE_HEARD : MISSES_TO_BE_SILENT;
  return contrary + 1 < limit ? { isSilent, contrary: contrary + 1 } : { isSilent: !isSilent, contrary: 0 };
}
