import { isDeepStrictEqual } from "node:util";
import type { Difference, Gateway, GatewayConfig, Suspicion, TransactionCounts } from "@egress-nat/founat";
import { changeOf } from "./clients.ts";
import type { DesiredState } from "./desired-state.ts";

/** The part of founat's gateway that is used here. */
export type GatewayPort = Pick<
  Gateway,
  "configure" | "sync" | "update" | "check" | "repair" | "drops" | "transactions"
>;

const NO_TRANSACTIONS: TransactionCounts = { begun: 0, succeeded: 0 };

/** Brings the kernel to desired states, and knows what it holds. */
export class GatewaySync {
  readonly #createGateway: (config: GatewayConfig) => GatewayPort;
  /** One for good: it remembers whose flows it could not end yet. */
  #gateway: GatewayPort | undefined;
  #applied: DesiredState | undefined;
  /** What the gateway is configured for already when the first state comes. */
  #prepared: GatewayConfig | undefined;

  constructor(createGateway: (config: GatewayConfig) => GatewayPort) {
    this.#createGateway = createGateway;
  }

  /** What the kernel holds; undefined while that is not certain. */
  get applied(): DesiredState | undefined {
    return this.#applied;
  }

  /** How often nftables was changed here. */
  get transactions(): TransactionCounts {
    return this.#gateway?.transactions ?? NO_TRANSACTIONS;
  }

  /**
   * Compares the kernel with what was applied last.
   *
   * @param where somebody else may have changed it
   * @throws FounatError
   */
  async check(where: Suspicion): Promise<readonly Difference[]> {
    return this.#certainly(async () => (await this.#gateway?.check(where)) ?? []);
  }

  /** Makes the kernel as it was applied last. @throws FounatError */
  repair(): Promise<void> {
    return this.#certainly(async () => this.#gateway?.repair());
  }

  /**
   * Does what can be done before it is known who the clients are; those that the kernel has stay.
   *
   * @throws FounatError
   */
  async prepare(config: GatewayConfig): Promise<void> {
    if (isDeepStrictEqual(this.#prepared, config)) return;
    this.#gateway ??= this.#createGateway(config);
    this.#prepared = undefined;
    await this.#gateway.configure(config);
    this.#prepared = config;
  }

  /**
   * Applies a state: by its differences from the last one where that was applied without an error, else in full.
   *
   * @throws FounatError; the next call then compares everything with the kernel
   */
  async apply(state: DesiredState): Promise<void> {
    this.#gateway ??= this.#createGateway(state.config);
    const gateway = this.#gateway;
    await this.#certainly(async () => {
      if (this.#applied === undefined) await this.#applyInFull(gateway, state);
      else await applyChange(gateway, this.#applied, state);
    });
    this.#applied = state;
  }

  /** Packets that were dropped, by the reason. @throws FounatError */
  async drops(): Promise<ReadonlyMap<string, number>> {
    return this.#gateway === undefined ? new Map() : this.#gateway.drops();
  }

  /** After a failure the gateway takes the kernel as its record, and it is not certain what that holds. */
  async #certainly<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.#applied = undefined;
      throw error;
    }
  }

  async #applyInFull(gateway: GatewayPort, { config, clients }: DesiredState): Promise<void> {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    if (!isDeepStrictEqual(prepared, config)) await gateway.configure(config);
    await gateway.sync(clients.values());
  }
}

async function applyChange(gateway: GatewayPort, before: DesiredState, state: DesiredState): Promise<void> {
  if (!isDeepStrictEqual(before.config, state.config)) await gateway.configure(state.config);
  const change = changeOf(before.clients, state.clients);
  if (change.put.length + change.remove.length > 0) await gateway.update(change);
}
