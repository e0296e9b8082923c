import type { Kernel } from "../kernel.ts";
import type { Logger } from "../logger.ts";
import type { GatewayClient, GatewayConfig } from "./config.ts";

/** The gateway side, in the network namespace of `kernel`. */
export class Gateway {
  constructor(_config: GatewayConfig, _options: { kernel: Kernel; logger: Logger }) {}
  /** Idempotent, fail-closed. */
  async init(): Promise<void> {}
  /** Changes destinations and exclusions while traffic flows. */
  async configure(_config: GatewayConfig): Promise<void> {}
  /** The full set of clients. */
  async sync(_clients: Iterable<GatewayClient>): Promise<void> {}
  /** A change of it. */
  async update(_change: { put?: Iterable<GatewayClient>; remove?: Iterable<string> }): Promise<void> {}
}
