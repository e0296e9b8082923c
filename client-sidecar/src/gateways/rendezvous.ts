import { createHash } from "node:crypto";

/**
 * The candidates that a key belongs to: all who ask for the same agree, and when one comes or goes no key moves between
 * the others (rendezvous hashing: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998).
 *
 * @returns at most `count`; all where there are no more, in their order
 */
export function rendezvous<C extends { readonly name: string }>(
  key: string,
  candidates: readonly C[],
  count: number,
): readonly C[] {
  if (candidates.length <= count) return candidates;
  const weight = ({ name }: C) => createHash("sha256").update(`${key}\0${name}`).digest("hex");
  return candidates
    .map((candidate) => ({ candidate, weight: weight(candidate) }))
    .sort((a, b) => (a.weight > b.weight ? -1 : 1))
    .slice(0, count)
    .map(({ candidate }) => candidate);
}
