/** Making a client known to the gateways of an Egress before its pod starts. */

import { awaitAcknowledgement } from "../gateways/acknowledgement.ts";
import type { Ask, SliceVersion } from "../gateways/health.ts";
import type { Verdict } from "../gateways/verdict.ts";
import type { EgressFacts, EgressView } from "../gateways/view.ts";
import { egressKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import { ClientError, type Refusal } from "./error.ts";
import type { ClientMetrics } from "./metrics.ts";

/** Below what kubelet gives the container runtime (2 minutes), and what the plugin gives the agent. */
const ACKNOWLEDGE_DEADLINE_MS = 20_000;

/** Where the agent picks: after so long without an answer a gateway gets no new flows, and holds up nobody. */
const SILENCE_MS = 2_000;

/** Tells gateways who their clients are. */
export interface Slices {
  /** @returns the version that holds all clients of the moment of this call; undefined where the Egress is gone */
  write(reference: EgressReference): Promise<SliceVersion | undefined>;
}

export interface AnnouncementEffects {
  readonly slices: Slices;
  readonly view: Pick<EgressView, "gateways">;
  readonly ask: Ask;
  readonly metrics: Pick<ClientMetrics, "acknowledgeSeconds">;
  readonly acknowledgeDeadlineMs?: number;
}

/**
 * Writes the clients of an Egress, and waits for its gateways where the Egress asks for it.
 *
 * @returns the gateways that do not answer and are left out
 * @throws ClientError; the signal's reason
 */
export async function announce(
  {
    slices,
    view,
    ask,
    metrics,
    acknowledgeDeadlineMs: deadlineMs = ACKNOWLEDGE_DEADLINE_MS,
  }: AnnouncementEffects,
  { metadata: { namespace, name }, spec: { clientStartup, gatewaySelection } }: EgressFacts,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const version = await slices.write({ namespace, name });
  if (version?.generation === undefined) {
    throw new ClientError({
      reason: "egress-missing",
      message: `Egress ${egressKey({ namespace, name })} was deleted meanwhile`,
    });
  }
  if (clientStartup === "Immediate") return [];
  const endTimer = metrics.acknowledgeSeconds.startTimer();
  const gateways = () => view.gateways({ namespace, name });
  // A Service proxy goes on picking a silent gateway until it is not ready, and from then on nobody asks it.
  const silenceMs = gatewaySelection === "Agent" ? SILENCE_MS : deadlineMs;
  const patience = { silenceMs, deadlineMs };
  const verdict = await awaitAcknowledgement({ gateways, ask, version, signal, patience });
  endTimer();
  if (verdict.decision === "start") return verdict.leftOut;
  throw new ClientError(refusal({ namespace, name }, verdict, deadlineMs));
}

function refusal(
  egress: EgressReference,
  { cause, gateways }: Extract<Verdict, { decision: "refuse" }>,
  deadlineMs: number,
): Refusal {
  const { namespace } = egress;
  const key = egressKey(egress);
  const names = gateways.join(", ");
  const waited = `within ${deadlineMs / 1000} s`;
  const messages = {
    behind: `gateways of Egress ${key} did not acknowledge the pod ${waited}: ${names}`,
    none: `Egress ${key} has no gateway that is ready`,
    silent: `no gateway of Egress ${key} answered the heartbeat ${waited}: ${names}`,
  };
  return {
    reason: cause === "none" ? "no-gateway" : "not-acknowledged",
    message: messages[cause],
    remedy:
      cause === "behind"
        ? `their logs say why: kubectl logs -n ${namespace} ${gateways[0]}`
        : `a NetworkPolicy in namespace ${namespace} may drop UDP 5556 from the nodes; kubectl get pods,networkpolicies -n ${namespace}`,
  };
}
