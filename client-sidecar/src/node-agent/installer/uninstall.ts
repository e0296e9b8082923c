/** Takes the plugin off the node: run when the product is uninstalled, and by nothing else. */

import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "@egress-nat/program";
import type { ConfigurationDirectory } from "./configuration-directory.ts";

const POLL_MS = 250;

export interface UninstallOptions {
  /** The agent's socket: while something listens there it would put the plugin back. */
  readonly socketPath: string;
  readonly configuration: Pick<ConfigurationDirectory, "remove">;
  readonly binaryPath: string;
  readonly stateDirectories: readonly string[];
  readonly logger: Logger;
}

/**
 * Waits until this node's agent is gone, then removes the plugin: out of the configuration first, so that no runtime
 * names an executable that is not there, then the executable, then the state. Idempotent.
 */
export async function uninstall(options: UninstallOptions, signal: AbortSignal): Promise<void> {
  const { socketPath, configuration, binaryPath, stateDirectories, logger } = options;
  while (await isListening(socketPath)) {
    logger.info({ socketPath }, "waiting for the node agent to end");
    await pause(POLL_MS, undefined, { signal });
  }
  const files = configuration.remove();
  logger.info({ files }, "took the CNI plugin out of the node's configuration");
  await rm(binaryPath, { force: true });
  for (const directory of stateDirectories) await rm(directory, { recursive: true, force: true });
  logger.info({ binaryPath, stateDirectories }, "removed the CNI plugin and its state");
}

function isListening(socketPath: string): Promise<boolean> {
  const socket = connect(socketPath);
  const connected = once(socket, "connect").finally(() => socket.destroy());
  return connected.then(
    () => true,
    () => false,
  );
}
