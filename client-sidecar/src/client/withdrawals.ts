/** Works off tombstones: an address is free again when no gateway trusts it. */

import { Deadline, done, type Outcome, pause, WorkQueue } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { holders } from "../gateways/acknowledgement.ts";
import type { Ask } from "../gateways/health.ts";
import type { EgressView } from "../gateways/view.ts";
import { egressKey } from "../records/egress-key.ts";
import type { NodeState } from "../records/node-state.ts";
import type { EgressReference } from "../records/schema.ts";
import type { Slices } from "./announcement.ts";
import type { ClientRegistry } from "./registry.ts";

const POLL_MS = 25;
const ATTEMPT_MS = 1_000;

/** A gateway may be busy for a moment; who holds an address for longer is named in the log, once. */
const FAILURES_TO_WARN_OF = 3;

export interface WithdrawalsOptions {
  readonly state: Pick<NodeState, "tombstones" | "tombstone" | "mayBeTombstone" | "removeTrusted">;
  readonly registry: Pick<ClientRegistry, "forgetBuried" | "reclaim">;
  readonly slices: Slices;
  readonly view: Pick<EgressView, "gateways" | "knowsGateways">;
  readonly ask: Ask;
  readonly logger: Logger;
}

class StillTrusted extends Error {
  readonly code = "StillTrusted";

  constructor(gateways: readonly string[]) {
    super(`gateways may still trust it: ${gateways.join(", ")}`);
    this.name = "StillTrusted";
  }
}

/** Withdraws addresses from gateways, one after another, until their tombstones are gone. */
export class Withdrawals {
  readonly #options: WithdrawalsOptions;
  readonly #queue: WorkQueue;

  constructor(options: WithdrawalsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      // Most of them wait: a gateway that does not answer must not hold up what others have let go of.
      concurrency: 64,
      backoff: { baseMs: 100, maxMs: 5_000 },
      onFailure: ({ key, error: err, failures }) => {
        if (failures !== FAILURES_TO_WARN_OF) return;
        options.logger.warn({ address: key, err }, "cannot withdraw an address, trying again");
      },
    });
  }

  /** Looks for tombstones: also for those that the CNI plugin has made while the agent was not there, or hung. */
  scan(): void {
    const { state, logger } = this.#options;
    try {
      for (const address of state.tombstones()) this.#queue.add(address);
    } catch (err) {
      logger.warn({ err }, "cannot look for addresses to withdraw, the next scan tries again");
    }
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((address, ended) => this.#work(address, ended), signal);
  }

  /** Withdraws addresses at once, for as long as somebody waits; whatever is left over then goes on by itself. */
  async withdraw(addresses: readonly string[], patienceMs: number): Promise<void> {
    for (const address of addresses) this.#queue.add(address);
    const until = AbortSignal.timeout(patienceMs);
    const isBuried = () => addresses.some((address) => this.#options.state.mayBeTombstone(address));
    while (isBuried() && (await pause(POLL_MS, until)));
  }

  async #work(address: string, signal: AbortSignal): Promise<Outcome> {
    const { state, registry, logger } = this.#options;
    const tombstone = state.tombstone(address);
    if (tombstone === undefined) return done;
    // A client that only the agent's memory holds would be written into the slice that is to let go of it.
    if (tombstone.record !== undefined) registry.forgetBuried(tombstone.record);
    if (registry.reclaim(address)) return done;
    // Not AbortSignal.any(): the heartbeat joins what it is given with a time limit of its own in that way, and one that is
    // made of another with a time limit stays in memory (https://github.com/nodejs/node/issues/54614).
    using deadline = new Deadline(ATTEMPT_MS, signal);
    const held = await Promise.all(
      tombstone.egresses.map((egress) => this.#holders(egress, deadline.signal)),
    );
    const names = [...new Set(held.flat())];
    if (names.length > 0) throw new StillTrusted(names);
    state.removeTrusted(address);
    logger.debug({ address }, "address is free");
    return done;
  }

  /** Brings a slice up to date and waits a while for its gateways. @returns those that may still trust who left it */
  async #holders(egress: EgressReference, until: AbortSignal): Promise<readonly string[]> {
    const { slices, view, ask } = this.#options;
    const version = await slices.write(egress);
    if (version === undefined) return [];
    const released = new Set<string>();
    let names: readonly string[];
    do {
      const gateways = view.gateways(egress).filter(({ name }) => !released.has(name));
      const all = gateways.map(({ name }) => name);
      if (view.knowsGateways(egress)) {
        const left = await holders(ask, gateways, version, until).catch(() => all);
        for (const name of all) if (!left.includes(name)) released.add(name);
        names = left.map((name) => `${egress.namespace}/${name}`);
      } else names = [`any of Egress ${egressKey(egress)}, whose Service is not known`];
    } while (names.length > 0 && (await pause(POLL_MS, until)));
    return names;
  }
}
