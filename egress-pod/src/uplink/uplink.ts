/** Whether a gateway has its way out, and takes itself out of new flows where it has not. */

import { hostname } from "node:os";
import { FAMILIES, type Family, familyOf } from "@egress-nat/addresses";
import { UPLINK_LOST_KEY, UPLINK_REASON, UPLINK_WORKS_KEYS } from "@egress-nat/crds";
import { type Clock, pause, systemClock } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { GatewayEvent } from "../gateway-event.ts";
import type { Ping } from "./ping.ts";
import { afterRequest, NEW_TARGET, type Target, wayOf } from "./target.ts";

const LOOK_MS = 250;

/** The only gateway that vouches may be starting again, or its answer be lost. */
const DOUBT_AFTER_MS = 10_000;

export interface UplinkOptions {
  /** The addresses to ask, as the Egress names them now; undefined while it is not known. */
  readonly targets: () => readonly string[] | undefined;
  /** Of the gateway's own addresses: in others there is no way out to lose. */
  readonly families: ReadonlySet<Family>;
  /** Asks the other gateways. @returns the families in which any of them has its way out */
  readonly askOthers: (signal: AbortSignal) => Promise<ReadonlySet<Family>>;
  /** Whether there is no other gateway. */
  readonly isAlone: () => boolean;
  readonly ping: Ping;
  readonly recordEvent: (event: GatewayEvent) => void;
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** lost: it gets no answer, and another gateway does. in-doubt: no other says so, and the addresses may be what is lost. */
type State = "works" | "lost" | "in-doubt";

/** Whether a heartbeat asks for the way out by this key. */
export function isUplinkKey(key: string): boolean {
  return [UPLINK_LOST_KEY, ...Object.values<string>(UPLINK_WORKS_KEYS)].includes(key);
}

export class Uplink {
  readonly #options: UplinkOptions;
  readonly #clock: Clock;
  readonly #targets = new Map<string, Target>();
  readonly #asking = new Map<string, AbortController>();
  /** Since when it gets no answer, and nobody vouches. */
  #inDoubtSinceMs: number | undefined;
  /** Undefined of a new gateway, until each family has shown what it is. */
  #state: State | undefined;
  #changes = 0;

  constructor(options: UplinkOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** The answer to a key for which {@link isUplinkKey} holds. */
  heartbeat(key: string): string | undefined {
    const isLost = this.#state === "lost";
    if (key === UPLINK_LOST_KEY) return isLost ? "lost" : undefined;
    // Two that have lost different families would drive each other out.
    if (isLost) return undefined;
    const family = FAMILIES.find((each) => key === UPLINK_WORKS_KEYS[each]);
    return family !== undefined && wayOf(this.#of(family)) === "works" ? "works" : undefined;
  }

  /** Why no new flow should come here; undefined where they may. */
  get reason(): string | undefined {
    const isNew = this.#state === undefined && (this.#options.targets() ?? []).length > 0;
    if (this.#state !== "lost" && !isNew) return undefined;
    const silent = this.#asked(this.#silentFamilies);
    if (silent.length > 0) return `${UPLINK_REASON}no answer from ${silent.join(", ")}`;
    const untried = this.#asked(this.#untriedFamilies);
    return (
      UPLINK_REASON + (untried.length > 0 ? `no answer yet from ${untried.join(", ")}` : "not tried yet")
    );
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    do {
      this.#followTargets(signal);
      await this.#look(signal);
    } while (await pause(LOOK_MS, signal, this.#clock));
  }

  #followTargets(signal: AbortSignal): void {
    const { families } = this.#options;
    const named = this.#options.targets() ?? [];
    const targets = new Set(named.filter((address) => families.has(familyOf(address))));
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
      this.#targets.set(address, NEW_TARGET);
      const onRequest = (answered: boolean) => {
        const target = this.#targets.get(address);
        if (target === undefined || this.#asking.get(address) !== asking) return;
        this.#targets.set(address, afterRequest(target, answered));
      };
      void this.#options.ping(address, onRequest, AbortSignal.any([asking.signal, signal]));
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    if (this.#state !== "works" && !this.#isTried) return;
    const silent = this.#silentFamilies;
    const others = silent.length > 0 ? await this.#options.askOthers(signal) : new Set();
    if (signal.aborted) return;
    // Whoever is lost already stays so until enough answers have come.
    const isLost = silent.some(
      (family) => others.has(family) && (this.#state === "lost" || wayOf(this.#of(family)) === "silent"),
    );
    const isInDoubt = silent.length > 0 && !isLost;
    if (isInDoubt && this.#waitsForVoucher()) return;
    if (!isInDoubt) this.#inDoubtSinceMs = undefined;
    const state = isInDoubt ? "in-doubt" : isLost ? "lost" : "works";
    if (state === this.#state) return;
    const before = this.#state;
    this.#state = state;
    if (before === undefined && state === "works") return;
    const { recordEvent, logger } = this.#options;
    logger.warn({ before, after: state, silent: this.#asked(silent) }, "the way out has changed");
    this.#changes += 1;
    const { message, ...event } = this.#eventOf(state);
    // Events that say the same would be one, whose count a gateway may not change: their number makes each another one.
    recordEvent({
      ...event,
      message: `${message} (change ${this.#changes} of its way out since it started)`,
    });
  }

  /** A gateway that takes no new flows takes none for a while yet. */
  #waitsForVoucher(): boolean {
    const now = this.#clock.now();
    this.#inDoubtSinceMs ??= now;
    const isOut = this.#state === undefined || this.#state === "lost";
    return isOut && !this.#options.isAlone() && now - this.#inDoubtSinceMs < DOUBT_AFTER_MS;
  }

  #of(family: Family): readonly Target[] {
    return [...this.#targets].flatMap(([address, target]) => (familyOf(address) === family ? target : []));
  }

  /** Of which none answers. */
  get #silentFamilies(): readonly Family[] {
    return FAMILIES.filter((family) => {
      const targets = this.#of(family);
      return targets.length > 0 && targets.every(({ isSilent }) => isSilent);
    });
  }

  /** Of which no address has answered, and of one at least nothing is known yet. */
  get #untriedFamilies(): readonly Family[] {
    return FAMILIES.filter((family) => {
      const targets = this.#of(family);
      return targets.some(({ isSilent }) => !isSilent) && !targets.some(({ answered }) => answered);
    });
  }

  get #isTried(): boolean {
    return this.#options.targets() !== undefined && this.#untriedFamilies.length === 0;
  }

  #asked(families: readonly Family[]): readonly string[] {
    return [...this.#asking.keys()].filter((address) => families.includes(familyOf(address)));
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
    const silence = `${gateway} gets no answer from ${this.#asked(this.#silentFamilies).join(", ")} (spec.uplinkProbe)`;
    if (state === "lost") {
      const message = `${silence}, and another gateway does: new flows begin with others.`;
      return { ...common, type: "Warning", reason: "UplinkLost", message };
    }
    const message =
      `${silence}, and no other gateway says that it does: it takes new flows as before. Check that the addresses ` +
      "answer echo requests from the gateways, and that gateways may ask each other (UDP 5556).";
    return { ...common, type: "Warning", reason: "UplinkTargetsSilent", message };
  }
}
