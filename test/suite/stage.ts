import type { Tally } from "./tally.ts";

/** What a stage may use: the checkout, and what the user asked for. */
export interface StageContext {
  readonly root: string;
  readonly signal: AbortSignal;
  /** For vitest: parts of file names. */
  readonly filters: readonly string[];
  /** Lets the formatter and the linters repair what they can. */
  readonly fix: boolean;
  /** Other stages run at the same time, and write to the same terminal. */
  readonly amongOthers: boolean;
}

export interface Stage {
  readonly name: string;
  readonly summary: string;
  readonly run: (context: StageContext) => Promise<Tally>;
}

/** Steps one after the other; the stages of a step run at the same time. */
export type Plan = readonly (readonly Stage[])[];
