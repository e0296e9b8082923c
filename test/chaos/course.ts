import { progress } from "../bench/progress.ts";
import { type Ground, untilWhole } from "./ground.ts";
import { addSamples, type Holding } from "./holding.ts";
import { type Load, measureRound } from "./measure.ts";
import type { Report } from "./report.ts";
import { SCENARIOS } from "./scenarios.ts";
import type { Scenario } from "./scene.ts";

const HOUR_MS = 3_600_000;

export interface CourseOptions extends Load {
  /** How many times to do all of it. */
  readonly rounds: number;
  /** In place of rounds: for how long to begin it again. What programs hold is watched meanwhile. */
  readonly hours?: number;
}

/** Scenarios one after another, again and again. One that is broken off is left out from then on. */
export class Course {
  readonly #ground: Ground;
  readonly #options: CourseOptions;
  readonly #reports: Map<string, Report>;
  #holdings: readonly Holding[] = [];

  constructor(ground: Ground, names: readonly string[], options: CourseOptions) {
    this.#ground = ground;
    this.#options = options;
    this.#reports = new Map(
      names.map((chaos) => {
        const { summary, expected } = SCENARIOS[chaos] as Scenario;
        return [chaos, { chaos, summary, expected, selection: ground.selection, rounds: [] }];
      }),
    );
  }

  get reports(): readonly Report[] {
    return [...this.#reports.values()];
  }

  get holdings(): readonly Holding[] {
    return this.#holdings;
  }

  async run(): Promise<void> {
    const { rounds, hours } = this.#options;
    const until = Date.now() + (hours ?? 0) * HOUR_MS;
    for (let round = 1; hours === undefined ? round <= rounds : Date.now() < until; round += 1) {
      const left = this.reports.filter(({ brokenOff }) => brokenOff === undefined);
      if (left.length === 0) return;
      for (const report of left) await this.#measure(report, round);
    }
  }

  async #measure(report: Report, round: number): Promise<void> {
    const { chaos, selection, rounds } = report;
    progress(`${chaos}, ${selection} selection: round ${round}`);
    try {
      const measured = await measureRound(this.#ground, SCENARIOS[chaos] as Scenario, this.#options);
      this.#reports.set(chaos, { ...report, rounds: [...rounds, measured] });
    } catch (err) {
      progress(`${chaos} is broken off: ${String(err)}`);
      const [brokenOff = ""] = String(err).split("\n");
      this.#reports.set(chaos, { ...report, brokenOff });
      return;
    }
    if (this.#options.hours !== undefined) await this.#addSamples();
  }

  async #addSamples(): Promise<void> {
    try {
      await untilWhole(this.#ground);
      this.#holdings = await addSamples(this.#ground, this.#holdings);
    } catch (err) {
      progress(`no samples are taken: ${String(err)}`);
    }
  }
}
