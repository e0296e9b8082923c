/** What a gateway that drains tells: how many flows are left, by its log, by events and by a metric. */

import { hostname } from "node:os";
import type { Logger } from "@egress-nat/program";
import type { Drained, DrainProgress } from "./drain.ts";
import type { GatewayEvent } from "./gateway-event.ts";

const LOG_EVERY_MS = 30_000;

const NOTHING_LEFT = { unused: "no client is left", idle: "no flow is left", timeout: "no flow is left" };

export interface DrainReportOptions {
  readonly recordEvent: (event: GatewayEvent) => void;
  readonly logger: Logger;
}

export class DrainReport {
  readonly #options: DrainReportOptions;
  #flows: number | undefined = 0;
  /** When a line was logged last, since the start of the drain; undefined: there is nothing to drain yet. */
  #loggedAtMs: number | undefined;

  constructor(options: DrainReportOptions) {
    this.#options = options;
  }

  /** How many flows are left; 0 while the gateway does not drain, NaN where they cannot be counted. */
  get flows(): number {
    return this.#flows ?? Number.NaN;
  }

  progress(progress: DrainProgress): void {
    const { flows, elapsedMs } = progress;
    this.#flows = flows;
    if (this.#loggedAtMs === undefined) this.#start(progress);
    else if (flows === 0 || elapsedMs - this.#loggedAtMs < LOG_EVERY_MS) return;
    else this.#options.logger.info(progress, "still draining");
    this.#loggedAtMs = elapsedMs;
  }

  /** Of a gateway that had no client to drain there is no event. */
  end(drained: Drained): void {
    const { logger, recordEvent } = this.#options;
    const { reason, flows, elapsedMs } = drained;
    this.#flows = flows;
    const common = { reason: "GatewayDrained", action: "Drain" };
    const seconds = Math.round(elapsedMs / 1000);
    if (flows !== 0) {
      logger.warn(drained, "drain time is over, cutting flows off");
      const message =
        `Gateway ${hostname()} has drained for ${seconds} s and cuts off ${numberOf(flows)}. ` +
        "If flows need longer, raise spec.drainTimeoutSeconds of the Egress, and terminationGracePeriodSeconds if its template has it.";
      recordEvent({ ...common, type: "Warning", message });
      return;
    }
    logger.info(drained, "drained");
    if (this.#loggedAtMs === undefined) return;
    const message = `Gateway ${hostname()} has drained in ${seconds} s: ${NOTHING_LEFT[reason]}.`;
    recordEvent({ ...common, type: "Normal", message });
  }

  #start(progress: DrainProgress): void {
    const { logger, recordEvent } = this.#options;
    const { flows, elapsedMs, timeoutMs } = progress;
    logger.info(progress, "draining");
    const deadline = new Date(Date.now() + timeoutMs - elapsedMs).toISOString();
    const message =
      `Gateway ${hostname()} is being terminated and has ${numberOf(flows)}. ` +
      `It serves until they are over, at the latest until ${deadline} (${timeoutMs / 1000} s).`;
    recordEvent({ type: "Normal", reason: "GatewayDraining", action: "Drain", message });
  }
}

function numberOf(flows: number | undefined): string {
  if (flows === undefined) return "an unknown number of flows";
  return flows === 1 ? "1 flow" : `${flows} flows`;
}
