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
  readonly #measureRound: typeof measureRound;
  readonly #reports: Map<string, Report>;
  #holdings: readonly Holding[] = [];

  constructor(ground: Ground, names: readonly string[], options: CourseOptions, measure = measureRound) {
    this.#ground = ground;
    this.#options = options;
    this.#measureRound = measure;
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

  async #measure({ chaos, selection }: Report, round: number): Promise<void> {
    progress(`${chaos}, ${selection} selection: round ${round}`);
    try {
      await this.#measureRound(this.#ground, SCENARIOS[chaos] as Scenario, this.#options, (measured) =>
        this.#update(chaos, ({ rounds }) => ({ rounds: [...rounds, measured] })),
      );
    } catch (err) {
      progress(`${chaos} is broken off: ${String(err)}`);
      const [why = ""] = String(err).split("\n");
      this.#update(chaos, () => ({ brokenOff: [why] }));
      return;
    }
    if (this.#options.hours !== undefined) await this.#addSamples();
  }

  #update(chaos: string, changed: (report: Report) => Partial<Report>): void {
    const report = this.#reports.get(chaos) as Report;
    this.#reports.set(chaos, { ...report, ...changed(report) });
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
