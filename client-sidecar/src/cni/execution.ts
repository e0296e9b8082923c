/** One execution as the container runtime starts it: configuration on stdin, a result or an error on stdout. */

import { NODE_LOCATIONS, type StateLocations } from "../records/state-folder.ts";
import { CniError, CniErrorCode, messageOf } from "./error.ts";
import { host } from "./host.ts";
import { errorOutcome, type Outcome, runPlugin } from "./plugin.ts";

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

function outcome(locations: StateLocations): Outcome {
  let stdin: string;
  try {
    stdin = host.readStdin();
  } catch (error) {
    return errorOutcome(new CniError(CniErrorCode.ioFailure, messageOf(error)));
  }
  return runPlugin(host.environment, stdin, locations);
}
