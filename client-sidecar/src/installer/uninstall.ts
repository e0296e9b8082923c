/** Takes the plugin off the node: run by the chart's uninstall hook, and by nothing else. */

import { readdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Logger } from "@egress-nat/program";
import type { ConfigurationDirectory } from "./configuration-directory.ts";

const POLL_MS = 250;

export interface UninstallOptions {
  /** The agent's socket: while something listens there it would put the plugin back. */
  readonly socketPath: string;
  readonly configuration: Pick<ConfigurationDirectory, "remove">;
  /** The executable. */
  readonly binaryPath: string;
  readonly runDirectory: string;
  readonly logger: Logger;
}

/**
 * Waits until this node's agent is gone, then removes the plugin: out of the configuration first, so that no runtime
 * names an executable that is not there, then the executable, then the state. Idempotent.
 */
export async function uninstall(options: UninstallOptions, signal: AbortSignal): Promise<void> {
  const { socketPath, configuration, binaryPath, runDirectory, logger } = options;
  while (await isListening(socketPath)) {
    logger.info({ socketPath }, "waiting for the node agent to end");
    await pause(POLL_MS, undefined, { signal });
  }
  const files = configuration.remove();
  logger.info({ files }, "took the CNI plugin out of the node's configuration");
  await rm(binaryPath, { force: true });
  await removeContents(runDirectory);
  logger.info({ binaryPath, runDirectory }, "removed the CNI plugin and its state");
}

/** The directory itself is a mount point in this container, and cannot be removed from here. */
async function removeContents(directory: string): Promise<void> {
  const entries = await readdir(directory).catch(() => []);
  await Promise.all(entries.map((entry) => rm(`${directory}/${entry}`, { recursive: true, force: true })));
}

function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
