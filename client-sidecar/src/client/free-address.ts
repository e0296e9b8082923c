import { AGENT_REMEDY } from "../cni/agent-call.ts";
import { CniError, CniErrorCode } from "../cni/error.ts";
import { type Attachment, recordId } from "../records/record-id.ts";
import type { StateFolder } from "../records/state-folder.ts";

/**
 * Refuses addresses that a gateway may trust as those of another pod: whoever got one would pass in that pod's name.
 *
 * @param attachment of the pod that is being added
 * @param addresses canonical ones, of that pod
 * @throws CniError 11, 4 where the attachment is there already
 */
export function assertFree(
  state: Pick<StateFolder, "isTrusted" | "hasRecord">,
  attachment: Attachment,
  addresses: readonly string[],
): void {
  const trusted = addresses.find((address) => state.isTrusted(address));
  if (trusted === undefined) return;
  if (state.hasRecord(recordId(attachment))) {
    const { containerId, ifname, network } = attachment;
    throw new CniError(
      CniErrorCode.invalidEnvironment,
      `container ${containerId} is attached to network ${network} by ${ifname} already, and a client of an Egress`,
      "the container runtime has to detach it (DEL) before it attaches it again",
    );
  }
  throw new CniError(
    CniErrorCode.tryAgainLater,
    `address ${trusted} belongs or belonged to a client of an Egress, and a gateway may still trust it`,
    `it is free when all gateways have let go of it, as a rule within seconds; the log of the node agent names one that does not answer: ${AGENT_REMEDY}`,
  );
}
