import type { Tally } from "./tally.ts";

/** What a stage may use: the checkout, a folder that is removed afterwards, and what the user asked for. */
export interface StageContext {
  readonly root: string;
  readonly scratch: string;
  readonly signal: AbortSignal;
  /** For vitest: parts of file names. */
  readonly filters: readonly string[];
  /** Lets the formatter and the linters repair what they can. */
  readonly fix: boolean;
  /** Other stages run at the same time, and write to the same terminal. */
  readonly amongOthers: boolean;
  /** Of its processes, from 0 to 19; see nice(1). */
  readonly niceness: number;
}

export interface Stage {
  readonly name: string;
  readonly summary: string;
  /** Gives way to the other stages of its step, and has the processor while they wait. */
  readonly background?: boolean;
  readonly run: (context: StageContext) => Promise<Tally>;
}

/** Steps one after the other; the stages of a step run at the same time. */
export type Plan = readonly (readonly Stage[])[];
