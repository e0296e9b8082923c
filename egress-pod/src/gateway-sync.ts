import { isDeepStrictEqual } from "node:util";
import type { Gateway, GatewayConfig } from "@egress-nat/founat";
import { changeOf } from "./clients.ts";
import type { DesiredState } from "./desired-state.ts";

/** The part of founat's gateway that is used here. */
export type GatewayPort = Pick<Gateway, "init" | "configure" | "sync" | "update">;

interface Applied {
  readonly gateway: GatewayPort;
  readonly state: DesiredState;
}

const NO_SLICES: ReadonlyMap<string, number> = new Map();

/** Brings the kernel to desired states, and knows what it holds. */
export class GatewaySync {
  readonly #createGateway: (config: GatewayConfig) => GatewayPort;
  /** Undefined while it is not certain what the kernel holds. */
  #applied: Applied | undefined;

  constructor(createGateway: (config: GatewayConfig) => GatewayPort) {
    this.#createGateway = createGateway;
  }

  /** The slices whose clients the kernel serves: UID -> generation. */
  get appliedSlices(): ReadonlyMap<string, number> {
    return this.#applied?.state.slices ?? NO_SLICES;
  }

  /** Whether it is known what the kernel holds. */
  get isCertain(): boolean {
    return this.#applied !== undefined;
  }

  /** The number of clients that the kernel serves. */
  get appliedClients(): number {
    return this.#applied?.state.clients.size ?? 0;
  }

  /**
   * Applies a state: by its differences from the last one where that was applied without an error, else in full.
   *
   * @throws FounatError; the next call then compares everything with the kernel
   */
  async apply(state: DesiredState): Promise<void> {
    try {
      const gateway = this.#applied
        ? await applyChange(this.#applied, state)
        : await this.#applyInFull(state);
      this.#applied = { gateway, state };
    } catch (error) {
      this.#applied = undefined;
      throw error;
    }
  }

  async #applyInFull({ config, clients }: DesiredState): Promise<GatewayPort> {
    const gateway = this.#createGateway(config);
    await gateway.init();
    await gateway.sync(clients.values());
    return gateway;
  }
}

async function applyChange({ gateway, state: before }: Applied, state: DesiredState): Promise<GatewayPort> {
  if (!isDeepStrictEqual(before.config, state.config)) await gateway.configure(state.config);
  const change = changeOf(before.clients, state.clients);
  if (change.put.length + change.remove.length > 0) await gateway.update(change);
  return gateway;
}
