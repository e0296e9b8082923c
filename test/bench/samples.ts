import { progress } from "./progress.ts";

export type Samples = readonly number[];

/** What a list of samples comes to. */
export interface Summary {
  readonly median: number;
  /** The tenth and the ninetieth percentile: the spread. */
  readonly low: number;
  readonly high: number;
}

export function summarize(samples: Samples): Summary {
  const sorted = samples.toSorted((a, b) => a - b);
  return { median: quantile(sorted, 0.5), low: quantile(sorted, 0.1), high: quantile(sorted, 0.9) };
}

/** Rounds may take milliseconds or half a minute. */
const PROGRESS_EVERY_MS = 10_000;

/**
 * Takes samples of several things in turn, so that what slows the machine down for a while slows down all of them.
 *
 * @param takers each takes one sample
 * @returns the samples of each, in the order in which they were taken
 */
export async function interleave<Name extends string>(
  rounds: number,
  takers: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(takers) as Name[];
  const samples = {} as Record<Name, number[]>;
  for (const name of names) samples[name] = [];
  let saidAt = performance.now();
  for (let round = 0; round < rounds; round += 1) {
    for (const name of names) samples[name].push(await takers[name]());
    if (performance.now() - saidAt < PROGRESS_EVERY_MS) continue;
    saidAt = performance.now();
    progress(`samples: ${round + 1} of ${rounds}`);
  }
  return samples;
}

/** Between two samples it goes straight. */
function quantile(sorted: Samples, q: number): number {
  const position = (sorted.length - 1) * q;
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position % 1);
}
