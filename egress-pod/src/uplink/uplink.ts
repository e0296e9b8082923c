/** Whether a gateway has its way out, and takes itself out of new flows where it has not. */

import { hostname } from "node:os";
import { FAMILIES, familyOf } from "@egress-nat/addresses";
import { type Clock, pause, systemClock } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { GatewayEvent } from "../gateway-event.ts";
import type { Ping } from "./ping.ts";
import { afterRequest, NEW_TARGET, type Target } from "./target.ts";

const LOOK_MS = 250;

export interface UplinkOptions {
  /** The addresses to ask, as the Egress names them now. */
  readonly targets: () => readonly string[];
  /** Asks the other gateways. @returns of each that answers whether it has its way out */
  readonly askOthers: (signal: AbortSignal) => Promise<readonly boolean[]>;
  readonly ping: Ping;
  readonly recordEvent: (event: GatewayEvent) => void;
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** lost: it gets no answer, and another gateway does. in-doubt: nobody does, so that the addresses may be what is lost. */
type State = "works" | "lost" | "in-doubt";

export class Uplink {
  readonly #options: UplinkOptions;
  readonly #clock: Clock;
  readonly #targets = new Map<string, Target>();
  readonly #asking = new Map<string, AbortController>();
  #state: State = "works";

  constructor(options: UplinkOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Whether none of the addresses of a family answers. Others are told so, whatever it means. */
  get isSilent(): boolean {
    return this.#silent.length > 0;
  }

  /** Why no new flow should come here; undefined where they may. */
  get reason(): string | undefined {
    return this.#state === "lost" ? `uplink: no answer from ${this.#silent.join(", ")}` : undefined;
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    do {
      this.#followTargets(signal);
      await this.#look(signal);
    } while (await pause(LOOK_MS, signal, this.#clock));
  }

  #followTargets(signal: AbortSignal): void {
    const targets = new Set(this.#options.targets());
    for (const [address, asking] of this.#asking) {
      if (targets.has(address)) continue;
      asking.abort();
      this.#asking.delete(address);
      this.#targets.delete(address);
    }
    for (const address of targets) {
      if (this.#asking.has(address)) continue;
      const asking = new AbortController();
      this.#asking.set(address, asking);
      const onRequest = (answered: boolean) => {
        if (this.#asking.get(address) !== asking) return;
        this.#targets.set(address, afterRequest(this.#targets.get(address) ?? NEW_TARGET, answered));
      };
      void this.#options.ping(address, onRequest, AbortSignal.any([asking.signal, signal]));
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const others = this.isSilent ? await this.#options.askOthers(signal) : [];
    if (signal.aborted) return;
    const state = !this.isSilent ? "works" : others.includes(true) ? "lost" : "in-doubt";
    if (state === this.#state) return;
    const { recordEvent, logger } = this.#options;
    logger.warn({ before: this.#state, after: state, silent: this.#silent }, "the way out has changed");
    this.#state = state;
    recordEvent(this.#eventOf(state));
  }

  /** Of families of which none answers. */
  get #silent(): readonly string[] {
    return FAMILIES.flatMap((family) => {
      const targets = [...this.#targets].filter(([address]) => familyOf(address) === family);
      return targets.every(([, { isSilent }]) => isSilent) ? targets.map(([address]) => address) : [];
    });
  }

  #eventOf(state: State): GatewayEvent {
    const common = { action: "ProbeUplink" } as const;
    const gateway = `Gateway ${hostname()}`;
    if (state === "works") {
      return {
        ...common,
        type: "Normal",
        reason: "UplinkBack",
        message: `${gateway} has its way out again.`,
      };
    }
    const silence = `${gateway} gets no answer from ${this.#silent.join(", ")} (spec.uplinkProbe)`;
    if (state === "lost") {
      const message = `${silence}, and another gateway does: new flows begin with others.`;
      return { ...common, type: "Warning", reason: "UplinkLost", message };
    }
    const message =
      `${silence}, and no other gateway says that it does: it stays in use. ` +
      "Check that the addresses answer echo requests from the gateways.";
    return { ...common, type: "Warning", reason: "UplinkTargetsSilent", message };
  }
}
