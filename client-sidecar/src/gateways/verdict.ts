/** Whether a client may start, by what its gateways have said so far. */

import type { Answer } from "./health.ts";

export type Verdict =
  /** Each gateway that answers has applied the slice, and at least one has. */
  | { readonly decision: "start"; readonly leftOut: readonly string[] }
  | { readonly decision: "wait" }
  | {
      readonly decision: "refuse";
      readonly cause: "behind" | "silent" | "none";
      /** Those that it is because of. */
      readonly gateways: readonly string[];
    };

/** How long a client waits. */
export interface Patience {
  /** For a gateway that is silent, where another one has acknowledged. */
  readonly silenceMs: number;
  /** For any. */
  readonly deadlineMs: number;
}

/**
 * @param answers what each ready gateway has said, by its name
 * @param elapsedMs since the slice was written
 */
export function verdict(
  answers: ReadonlyMap<string, Answer>,
  elapsedMs: number,
  { silenceMs, deadlineMs }: Patience,
): Verdict {
  const named = (answer: Answer) => [...answers.keys()].filter((name) => answers.get(name) === answer);
  const [applied, behind, silent] = [named("applied"), named("behind"), named("silent")];
  const isPatient = silent.length > 0 && elapsedMs < Math.min(silenceMs, deadlineMs);
  if (applied.length > 0 && behind.length === 0 && !isPatient) return { decision: "start", leftOut: silent };
  if (elapsedMs < deadlineMs) return { decision: "wait" };
  if (behind.length > 0) return { decision: "refuse", cause: "behind", gateways: behind };
  const cause = applied.length + silent.length === 0 ? "none" : "silent";
  return { decision: "refuse", cause, gateways: silent };
}
