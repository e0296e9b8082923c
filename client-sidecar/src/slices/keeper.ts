/** Keeps this node's slices as the records say, whoever changes or deletes them. */

import { EGRESS_LABEL, type EgressClientSlice } from "@egress-nat/crds";
import { done, WorkQueue } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { ClientRegistry } from "../client/registry.ts";
import { egressKey, egressOfKey } from "../records/egress-key.ts";
import type { NodeState } from "../records/node-state.ts";
import type { EgressReference } from "../records/schema.ts";
import type { SliceWriter } from "./writer.ts";

export interface SliceKeeperOptions {
  readonly state: Pick<NodeState, "addTombstone">;
  readonly registry: ClientRegistry;
  readonly writer: Pick<SliceWriter, "write" | "isInOrder">;
  readonly logger: Logger;
}

export class SliceKeeper {
  readonly #options: SliceKeeperOptions;
  readonly #queue: WorkQueue;

  constructor(options: SliceKeeperOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      concurrency: 4,
      backoff: { baseMs: 200, maxMs: 15_000 },
      onFailure: ({ key, error: err }) =>
        options.logger.warn({ egress: key, err }, "cannot write the slice, trying again"),
    });
  }

  /** Looks whether the slice of an Egress is in order. */
  inspect(reference: EgressReference): void {
    this.#queue.add(egressKey(reference));
  }

  /** Runs until the signal is aborted. */
  run(signal: AbortSignal): Promise<void> {
    return this.#queue.run(async (key) => {
      const reference = egressOfKey(key);
      if (!this.#options.writer.isInOrder(reference)) await this.#options.writer.write(reference);
      return done;
    }, signal);
  }

  /**
   * Makes tombstones of entries that have no record: of pods that ended while nobody could write it down, as when the node
   * lost its power.
   */
  buryStrays(slices: readonly EgressClientSlice[]): void {
    const { state, registry, logger } = this.#options;
    const held = new Set(registry.values().flatMap(({ addresses }) => addresses));
    const strays = new Map<string, EgressReference[]>();
    for (const slice of slices) {
      for (const address of slice.clients.flatMap(({ addresses }) => addresses)) {
        if (held.has(address)) continue;
        strays.set(address, [...(strays.get(address) ?? []), egressOf(slice)]);
      }
    }
    for (const [address, egresses] of strays) state.addTombstone(address, egresses);
    if (strays.size > 0) logger.info({ addresses: [...strays.keys()] }, "withdrawing clients that are gone");
  }
}

export function egressOf({ metadata }: EgressClientSlice): EgressReference {
  return { namespace: metadata.namespace, name: metadata.labels?.[EGRESS_LABEL] ?? "" };
}
