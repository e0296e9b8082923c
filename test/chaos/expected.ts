/** What a scenario must keep with Agent selection. */

import { z } from "zod";
import { type Round, sumOver } from "./round.ts";

export const Expected = z.object({
  /** Flows that may be reset: none, or those of the gateway that the scenario takes. */
  mayReset: z.enum(["none", "of the gateway"]),
  /** Whether those that may be reset may hang as well. */
  mayHang: z.literal(true).optional(),
  /** For how long new connections may fail, in milliseconds; 0: none fails; absent: as long as it is. */
  downtimeMs: z.number().optional(),
  /** How long after the mark the last flow may be reset, in milliseconds. */
  resetMs: z.number().optional(),
});
export type Expected = z.infer<typeof Expected>;

export interface Verdict {
  readonly name: string;
  readonly value: number;
  readonly atMost: number;
}

/** What of the rounds has to be how small. */
export function verdicts(expected: Expected, rounds: readonly Round[]): Verdict[] {
  const { mayReset, mayHang, downtimeMs, resetMs } = expected;
  const total = sumOver(rounds);
  const resets = rounds.map(({ slowestResetMs = 0 }) => slowestResetMs);
  const all: (Verdict | false)[] = [
    mayReset === "none" && {
      ...{ name: "flows lost", value: total(({ reset, broken }) => reset + broken), atMost: 0 },
    },
    mayReset !== "none" &&
      !mayHang && { name: "flows that hang", value: total(({ broken }) => broken), atMost: 0 },
    mayReset !== "none" && {
      ...{ name: "flows of other gateways lost", value: total((round) => round.lostOfOthers), atMost: 0 },
    },
    downtimeMs === 0 && {
      ...{ name: "new connections failed", value: total((round) => round.failedConnections), atMost: 0 },
    },
    downtimeMs !== undefined &&
      downtimeMs > 0 && {
        ...{ name: "downtime p99, ms", value: downtimeQuantile(rounds, 0.99), atMost: downtimeMs },
      },
    resetMs !== undefined && {
      ...{ name: "slowest reset, ms", value: Math.max(0, ...resets), atMost: resetMs },
    },
    { name: "packets leaked", value: total(({ leaked }) => leaked), atMost: 0 },
    ...Object.keys(rounds[0]?.counts ?? {}).map((name) => ({
      name: `${name}, of ${total(({ counts }) => counts?.[name]?.of ?? 0)}`,
      value: total(({ counts }) => counts?.[name]?.count ?? 0),
      atMost: 0,
    })),
  ];
  return all.filter((verdict) => verdict !== false);
}

export function isKept({ value, atMost }: Verdict): boolean {
  return value <= atMost;
}

/** Of the downtimes of all rounds, in milliseconds: always one that was measured, so that few rounds hide none. */
export function downtimeQuantile(rounds: readonly Round[], q: number): number {
  const sorted = rounds.map((round) => round.downtimeMs).toSorted((a, b) => a - b);
  return sorted[Math.ceil(q * sorted.length) - 1] ?? Number.NaN;
}
