/** One packet through each tunnel of a client that was added, and back. */

import { familyName, firstOfEach } from "@egress-nat/addresses";
import type { ClientConfig, SilentTunnel } from "@egress-nat/founat";
import type { Logger } from "@egress-nat/program";
import type { EgressFacts } from "../gateways/view.ts";
import { egressKey } from "../records/egress-key.ts";
import type { ClientRecord } from "../records/schema.ts";
import type { ClientMetrics } from "./metrics.ts";
import type { PodNetworks } from "./networks.ts";
import type { RecordPodEvent } from "./pod.ts";

const PROBE_TIMEOUT_MS = 2_000;

export interface TunnelProbeEffects {
  readonly networks: Pick<PodNetworks, "probe">;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Pick<ClientMetrics, "tunnelProbes">;
  readonly logger: Logger;
}

/**
 * Tells, by an event and a metric, of tunnels through which no answer comes. It never fails: many policy engines learn
 * a pod's address only after ADD, and let its packets pass soon.
 *
 * @param egresses those of the client; who starts at once (`clientStartup: Immediate`) waits for no answer either
 */
export async function probeTunnels(
  { networks, recordEvent, metrics, logger }: TunnelProbeEffects,
  { netns, pod, addresses }: ClientRecord,
  config: ClientConfig,
  egresses: readonly EgressFacts[],
): Promise<void> {
  const waiting = egresses.filter(({ spec }) => spec.clientStartup !== "Immediate");
  if (waiting.length === 0) return;
  try {
    const silent = await networks.probe(netns, config, {
      addresses: firstOfEach(addresses),
      egresses: waiting.map(({ metadata }) => egressKey(metadata)),
      timeoutMs: PROBE_TIMEOUT_MS,
    });
    metrics.tunnelProbes.inc({ result: silent.length === 0 ? "answered" : "silent" });
    for (const tunnel of silent) {
      logger.warn({ pod, ...tunnel }, "no answer through a client's tunnel");
      recordEvent(pod, { type: "Warning", reason: "TunnelNotAnswering", message: messageOf(tunnel) });
    }
  } catch (err) {
    metrics.tunnelProbes.inc({ result: "error" });
    logger.warn({ err, pod }, "cannot probe a client's tunnels");
  }
}

function messageOf({ egress, family, reason }: SilentTunnel): string {
  return (
    `the ${familyName(family)} tunnel to the gateways of Egress ${egress}: ${reason}; if connections through it fail, a ` +
    "NetworkPolicy may drop UDP 5555 between the pod and the gateways, on the way there or back"
  );
}
