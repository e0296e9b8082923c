import { recordId } from "../records/record-id.ts";
import type { Attachment } from "../records/schema.ts";
import type { StateFolder } from "../records/state-folder.ts";
import type { Refusal } from "./error.ts";

/** What to do where the agent is needed and not there. */
export const AGENT_REMEDY =
  "look at the agent of this node: kubectl get pods -A -o wide -l app.kubernetes.io/name=egress-nat,app.kubernetes.io/component=node-agent";

/**
 * Refuses addresses that a gateway may trust as those of another pod: whoever got one would pass in that pod's name.
 *
 * @param attachment of the pod that is being added
 * @param addresses canonical ones, of that pod
 */
export function heldAddress(
  state: Pick<StateFolder, "isTrusted" | "hasRecord">,
  attachment: Attachment,
  addresses: readonly string[],
): Refusal | undefined {
  const held = addresses.find((address) => state.isTrusted(address));
  if (held === undefined) return undefined;
  if (state.hasRecord(recordId(attachment))) {
    const { containerId, ifname, network } = attachment;
    return {
      reason: "attached-already",
      message: `container ${containerId} is attached to network ${network} by ${ifname} already, and a client of an Egress`,
      remedy: "the container runtime has to detach it (DEL) before it attaches it again",
    };
  }
  return {
    reason: "address-held",
    message: `address ${held} belongs or belonged to a client of an Egress, and a gateway may still trust it`,
    remedy: `it is free when all gateways have let go of it, as a rule within seconds; the log of the node agent names one that does not answer: ${AGENT_REMEDY}`,
  };
}
