/** What other programs change in the data path of a gateway, and how that is made good. */

import { hostname } from "node:os";
import type { Suspicion } from "@egress-nat/founat";
import type { Logger } from "@egress-nat/program";
import type { GatewayEgress } from "./egress.ts";
import type { RecordGatewayEvent } from "./gateway-event.ts";
import type { GatewaySync } from "./gateway-sync.ts";
import type { Metrics } from "./metrics.ts";

export interface DriftOptions {
  readonly sync: Pick<GatewaySync, "check" | "repair">;
  /** Told about changes of others that were taken back. */
  readonly recordEvent: RecordGatewayEvent;
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, "repaired">;
}

export class Drift {
  readonly #options: DriftOptions;
  /** Where the kernel may be otherwise than it was left; undefined: nowhere. */
  #suspicion: Suspicion | undefined;
  #repairs = 0;

  constructor(options: DriftOptions) {
    this.#options = options;
  }

  /** @param where somebody else may have changed the kernel */
  suspect({ elements }: Suspicion): void {
    this.#suspicion = { elements: elements || this.#suspicion?.elements === true };
  }

  /**
   * Makes good what somebody else has changed.
   *
   * @param onFound told of it before the repair: meanwhile nobody is sent here
   * @throws FounatError; the same is suspected again
   */
  async takeBack(egress: GatewayEgress | undefined, onFound: (reason: string) => void): Promise<void> {
    const { sync, logger, metrics, recordEvent } = this.#options;
    const where = this.#suspicion;
    if (where === undefined) return;
    const foundAt = performance.now();
    this.#suspicion = undefined;
    try {
      const differences = await sync.check(where);
      if (differences.length === 0) return;
      const words = differences.map(({ text }) => text);
      onFound(`another program changed the data path: ${words.join("; ")}`);
      await sync.repair();
      this.#repairs += 1;
      const durationMs = Math.round(performance.now() - foundAt);
      logger.warn({ differences: words, durationMs }, "another program changed the data path, repaired it");
      metrics.repaired(differences.map(({ object }) => object));
      // Events that say the same would be one, whose count a gateway may not change: their number makes each another one.
      const message =
        `Another program changed the data path of gateway ${hostname()}, which repaired it in ${durationMs} ms ` +
        `(${this.#repairs} times since it started): ${words.join("; ")}`;
      if (egress === undefined) return;
      recordEvent(egress, { type: "Warning", reason: "GatewayChanged", action: "Repair", message });
    } catch (error) {
      this.suspect(where);
      throw error;
    }
  }
}
