/** What the executable around the plugin gives to it of the operating system: host/host.c. */

import type { Files } from "../records/state-folder.ts";

/** Where a function fails, it throws an Error that says what failed, and why. */
interface Host extends Files {
  /** `CNI_*` variables, as the container runtime sets them. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** @returns all of it; what is no UTF-8 is replaced */
  readStdin(): string;
  writeStdout(text: string): void;
  /**
   * One line each way on a unix socket.
   *
   * @param line with its newline
   * @param timeoutMs for the whole exchange
   * @returns the answer without its newline
   */
  ask(socketPath: string, line: string, timeoutMs: number): string;
  /**
   * @param text an address without prefix length
   * @returns its one spelling, that of `canonicalAddress` in @egress-nat/addresses, whose library would take a third of the
   *   time that the plugin takes; undefined where it is no address
   */
  canonicalAddress(text: string): string | undefined;
  exit(code: number): never;
}

/** There in the executable only. */
export const { host } = globalThis as unknown as { readonly host: Host };
