import type { NodeState } from "../state/node-state.ts";
import { AGENT_REMEDY } from "./agent-call.ts";
import { CniError, CniErrorCode } from "./error.ts";

/**
 * Refuses addresses that a gateway may trust as those of another pod: whoever got one would pass in that pod's name.
 *
 * @param addresses canonical ones, of the pod that is being added
 * @throws CniError 11
 */
export function assertFree(state: Pick<NodeState, "isTrusted">, addresses: readonly string[]): void {
  const trusted = addresses.find((address) => state.isTrusted(address));
  if (trusted === undefined) return;
  throw new CniError(
    CniErrorCode.tryAgainLater,
    `address ${trusted} belongs or belonged to a client of an Egress, and a gateway may still trust it`,
    `it is free when all gateways have let go of it, as a rule within seconds; the log of the node agent names one that does not answer: ${AGENT_REMEDY}`,
  );
}
