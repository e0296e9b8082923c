/** One execution as the container runtime starts it: configuration on stdin, a result or an error on stdout. */

import { NODE_LOCATIONS, type StateLocations } from "../records/state-folder.ts";
import { parseConfiguration } from "./configuration.ts";
import { CniError, CniErrorCode, messageOf } from "./error.ts";
import { host } from "./host.ts";
import { type Command, parseCommand } from "./invocation.ts";
import type { JsonObject } from "./json.ts";
import { Plugin } from "./plugin.ts";
import { CURRENT_VERSION } from "./version.ts";

/**
 * Reads, runs the plugin, writes and ends the process.
 *
 * @param locations of the state shared with the agent
 */
export function execute(locations: StateLocations = NODE_LOCATIONS): void {
  const { exitCode, stdout } = outcome(locations);
  host.writeStdout(stdout);
  host.exit(exitCode);
}

/** What the runtime sees of one execution. */
function outcome(locations: StateLocations) {
  let version: string = CURRENT_VERSION;
  try {
    const stdin = readStdin();
    const command = parseCommand();
    const configuration = readConfiguration(command, stdin);
    const stated = configuration.cniVersion;
    if (typeof stated === "string") version = stated;
    const result = new Plugin(configuration, locations).run(command);
    return { exitCode: 0, stdout: result === undefined ? "" : `${JSON.stringify(result)}\n` };
  } catch (error) {
    return { exitCode: 1, stdout: `${JSON.stringify(errorResult(error, version))}\n` };
  }
}

function readStdin(): string {
  try {
    return host.readStdin();
  } catch (error) {
    throw new CniError(CniErrorCode.ioFailure, messageOf(error));
  }
}

/** DEL needs nothing from it but the network's name, where it is there, and must not fail for it. */
function readConfiguration(command: Command, stdin: string): JsonObject {
  try {
    return parseConfiguration(stdin);
  } catch (error) {
    if (command === "DEL" || (command === "VERSION" && stdin.trim() === "")) return {};
    throw error;
  }
}

/** @param cniVersion of the configuration, where it was understood so far */
function errorResult(error: unknown, cniVersion: string): JsonObject {
  const known =
    error instanceof CniError
      ? error
      : new CniError(CniErrorCode.ioFailure, `unexpected failure of the plugin: ${messageOf(error)}`);
  const { code, message: msg, details } = known;
  return { cniVersion, code, msg, details };
}
