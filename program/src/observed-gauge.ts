import { Gauge, type LabelValues, type Registry } from "prom-client";

/** One value, and the labels that it has. */
export type Sample<L extends string> = readonly [labels: LabelValues<L>, value: number];

export interface ObservedGaugeOptions<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly L[];
  /** Read at each scrape. */
  readonly read: () => number | readonly Sample<L>[];
}

/** Adds a gauge to a registry that says how things stand when somebody asks. */
export function observeGauge<L extends string>(
  registry: Registry,
  { name, help, labelNames = [], read }: ObservedGaugeOptions<L>,
): void {
  new Gauge<L>({
    ...{ name, help, labelNames, registers: [registry] },
    collect() {
      this.reset();
      const current = read();
      const samples: readonly Sample<L>[] = typeof current === "number" ? [[{}, current]] : current;
      for (const [labels, value] of samples) this.set(labels, value);
    },
  });
}
