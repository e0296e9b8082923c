import type { Kernel } from "../kernel.ts";
import type { Logger } from "../logger.ts";
import type { ClientConfig } from "./config.ts";

/** One client's network namespace. */
export class Client {
  constructor(_options: { kernel: Kernel; logger: Logger }) {}
  /** Brings the namespace to what `config` says; guard first, routes last. */
  async apply(_config: ClientConfig): Promise<{ changed: boolean }> {
    return { changed: false };
  }
  /** @returns what differs from `config`, in words; empty when nothing does */
  async check(_config: ClientConfig): Promise<string[]> {
    return [];
  }
  /** Takes away all that {@link apply} made. */
  async remove(): Promise<void> {}
}
