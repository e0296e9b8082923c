/** What the CNI plugin asks of the agent. */

import { abortable, Deadline } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import type { Adder } from "../client/adder.ts";
import { type CheckOptions, checkClient } from "../client/check.ts";
import type { Lives } from "../client/lives.ts";
import { sayLookalikes } from "../client/lookalike.ts";
import type { ClientMetrics } from "../client/metrics.ts";
import type { RecordPodEvent } from "../client/pod.ts";
import type { ClientRegistry } from "../client/registry.ts";
import type { Withdrawals } from "../client/withdrawals.ts";
import { CniError, CniErrorCode } from "../cni/error.ts";
import type { AddRequest, AgentRequest, CheckRequest } from "../cni/protocol.ts";
import type { EgressView } from "../gateways/view.ts";
import { recordId } from "../records/record-id.ts";
import { asCniError } from "./cni-errors.ts";

/** How long an ADD waits for an agent that has just started. */
const START_PATIENCE_MS = 10_000;

/** How long DEL waits for gateways: below the plugin's own patience, and its success does not depend on it. */
const WITHDRAW_PATIENCE_MS = 2_000;

export interface RequestHandlerOptions {
  /** Resolves when the agent knows the cluster. */
  readonly started: Promise<void>;
  readonly adder: Pick<Adder, "add">;
  readonly registry: Pick<ClientRegistry, "get" | "owner">;
  readonly lives: Lives;
  readonly withdrawals: Pick<Withdrawals, "withdraw">;
  readonly view: EgressView;
  readonly networks: CheckOptions["networks"];
  readonly reapplier: CheckOptions["reapplier"];
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Pick<ClientMetrics, "addSeconds" | "errors">;
  readonly logger: Logger;
}

/** Handles requests: several at once, but a DEL ends the ADD of the same attachment. */
export class RequestHandler {
  readonly #options: RequestHandlerOptions;
  readonly #additions = new Map<string, AbortController>();

  constructor(options: RequestHandlerOptions) {
    this.#options = options;
  }

  /** @throws CniError */
  async handle(request: AgentRequest, signal: AbortSignal): Promise<void> {
    try {
      switch (request.operation) {
        case "add":
          return await this.#add(request, signal);
        case "delete":
          await Promise.all(request.records.map((record) => this.#delete(record)));
          return;
        case "check":
          return await this.#check(request, signal);
        case "mention":
          return sayLookalikes(this.#options.recordEvent, request.pod, request.keys);
      }
    } catch (failure) {
      const error = asCniError(failure, request.operation === "add" ? request.pod : undefined);
      const code = error instanceof CniError ? error.code : CniErrorCode.tryAgainLater;
      this.#options.metrics.errors.inc({ operation: request.operation, code: String(code) });
      throw error;
    }
  }

  async #add(request: AddRequest, signal: AbortSignal): Promise<void> {
    const { adder, metrics } = this.#options;
    await this.#awaitStart(signal);
    const endTimer = metrics.addSeconds.startTimer();
    const controller = new AbortController();
    const record = recordId(request);
    this.#additions.set(record, controller);
    try {
      await adder.add(request, AbortSignal.any([signal, controller.signal]));
    } finally {
      // Not that of a later one, which must hear of its own DEL.
      if (this.#additions.get(record) === controller) this.#additions.delete(record);
      endTimer();
    }
  }

  async #delete(id: string): Promise<void> {
    const { registry, lives, withdrawals, logger } = this.#options;
    this.#additions.get(id)?.abort(new DOMException("the pod was deleted", "AbortError"));
    const record = registry.get(id);
    if (record === undefined) return;
    logger.info({ pod: record.pod, addresses: record.addresses }, "deleting a client");
    await lives.happened("deleted", record);
    await withdrawals.withdraw(record.addresses, WITHDRAW_PATIENCE_MS);
  }

  async #check(request: CheckRequest, signal: AbortSignal): Promise<void> {
    await this.#awaitStart(signal);
    const record = this.#options.registry.get(request.record);
    if (record !== undefined) await checkClient(this.#options, record, request, signal);
  }

  async #awaitStart(signal: AbortSignal): Promise<void> {
    using patience = new Deadline(START_PATIENCE_MS, signal);
    await abortable(this.#options.started, patience.signal).catch(() => {
      throw new CniError(
        CniErrorCode.tryAgainLater,
        "the node agent has not read the state of the cluster yet",
        "it has just started, the API server does not answer, or no operator runs: the log of the agent's pod says which",
      );
    });
  }
}
