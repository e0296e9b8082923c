/** Works off tombstones: an address is free again when no gateway trusts it. */

import { type Outcome, pause, requeueAfter, WorkQueue } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { EgressReference, Tombstone } from "../state/record.ts";
import type { StateDirectory } from "../state/state-directory.ts";
import { type Asker, isReleased } from "./acknowledgement.ts";
import type { ClientRegistry } from "./client-registry.ts";
import type { EgressView } from "./egress-view.ts";
import { TombstoneSchema } from "./record-schema.ts";
import type { SliceWriter } from "./slice-writer.ts";

const POLL_MS = 25;
const ATTEMPT_MS = 1_000;
const PAUSE_BETWEEN_ATTEMPTS_MS = 500;

export interface WithdrawalsOptions {
  readonly state: StateDirectory;
  readonly registry: Pick<ClientRegistry, "buryInterrupted">;
  readonly writer: Pick<SliceWriter, "write">;
  readonly view: Pick<EgressView, "gateways">;
  readonly asker: Pick<Asker, "ask">;
  readonly logger: Logger;
}

/** Withdraws addresses from gateways, one after another, until their tombstones are gone. */
export class Withdrawals {
  readonly #options: WithdrawalsOptions;
  readonly #queue: WorkQueue;

  constructor(options: WithdrawalsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      concurrency: 8,
      backoff: { baseMs: 100, maxMs: 5_000 },
      onReport: ({ key, failure }) => {
        if (failure === undefined) return;
        options.logger.warn({ address: key, err: failure.error }, "cannot withdraw, trying again");
      },
    });
  }

  /** Looks for tombstones: also for those that the CNI plugin has made while the agent was not there, or hung. */
  scan(): void {
    // First: a record that stands beside a tombstone would be written into the slice that is to let go of it.
    this.#options.registry.buryInterrupted();
    for (const address of this.#options.state.tombstones()) this.#queue.add(address);
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run((address, ended) => this.#work(address, ended), signal);
  }

  /**
   * Withdraws addresses at once, for as long as somebody waits; whatever is left over then goes on by itself.
   *
   * @param patienceMs how long to wait
   */
  async withdraw(addresses: readonly string[], patienceMs: number): Promise<void> {
    for (const address of addresses) this.#queue.add(address);
    const until = AbortSignal.timeout(patienceMs);
    const isBuried = () => addresses.some((address) => this.#options.state.hasTombstone(address));
    while (isBuried() && (await pause(POLL_MS, until)));
  }

  async #work(address: string, signal: AbortSignal): Promise<Outcome> {
    const tombstone = this.#read(address);
    if (tombstone !== undefined) {
      const until = AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_MS)]);
      const released = await Promise.all(tombstone.egresses.map((egress) => this.#release(egress, until)));
      if (!released.every((value) => value)) return requeueAfter(PAUSE_BETWEEN_ATTEMPTS_MS);
    }
    this.#options.state.removeTombstone(address);
    this.#options.logger.debug({ address }, "address is free");
    return { type: "done" };
  }

  async #release(egress: EgressReference, until: AbortSignal): Promise<boolean> {
    const { writer, view, asker } = this.#options;
    const version = await writer.write(egress);
    if (version === undefined) return true;
    do {
      if (await isReleased(asker, view.gateways(egress), version, until).catch(() => false)) return true;
    } while (await pause(POLL_MS, until));
    return false;
  }

  #read(address: string): Tombstone | undefined {
    const { state, logger } = this.#options;
    if (!state.hasTombstone(address)) return undefined;
    try {
      return TombstoneSchema.parse(state.readTombstone(address));
    } catch (err) {
      // Slices hold what records say, and this address is in none: nothing is left to withdraw by name.
      logger.error({ err, address }, "tombstone cannot be read, it is dropped");
      return undefined;
    }
  }
}
