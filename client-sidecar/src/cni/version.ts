/** Versions of the CNI specification, https://www.cni.dev/docs/spec/. */

import { CniError, CniErrorCode } from "./error.ts";
import type { Command } from "./invocation.ts";

/** Oldest first. Before 0.3.0 results have another shape, and there is no prevResult, which a chain needs. */
export const SUPPORTED_VERSIONS: readonly string[] = ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];

/** What the plugin speaks when the configuration does not say. */
export const CURRENT_VERSION = "1.1.0";

const FIRST_VERSION_WITH: Partial<Record<Command, string>> = {
  CHECK: "0.4.0",
  GC: "1.1.0",
  STATUS: "1.1.0",
};

/**
 * @throws CniError 1 when the plugin does not speak this version, or the version does not have the command
 */
export function assertVersion(version: string, command: Command): void {
  const position = SUPPORTED_VERSIONS.indexOf(version);
  if (position < 0) {
    throw new CniError(
      CniErrorCode.incompatibleVersion,
      `cniVersion "${version}" is not supported`,
      `write one of ${SUPPORTED_VERSIONS.join(", ")} into the node's CNI configuration`,
    );
  }
  const first = FIRST_VERSION_WITH[command];
  if (first !== undefined && position < SUPPORTED_VERSIONS.indexOf(first)) {
    throw new CniError(
      CniErrorCode.incompatibleVersion,
      `cniVersion "${version}" has no command ${command}`,
      `write at least ${first} into the node's CNI configuration`,
    );
  }
}
