import { createHash } from "node:crypto";

/**
 * The candidate that a key belongs to: all who ask for the same agree, and when one comes or goes no key moves between
 * the others (rendezvous hashing: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998).
 *
 * @returns undefined where there is no candidate
 */
export function rendezvous<C extends { readonly name: string }>(
  key: string,
  candidates: readonly C[],
): C | undefined {
  const weight = ({ name }: C) => createHash("sha256").update(`${key}\0${name}`).digest("hex");
  return candidates.reduce<C | undefined>(
    (best, candidate) => (best !== undefined && weight(best) > weight(candidate) ? best : candidate),
    undefined,
  );
}
