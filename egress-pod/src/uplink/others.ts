/** What other gateways of an Egress say of their way out. */

import { HEARTBEAT_PORT, UPLINK_KEY } from "@egress-nat/crds";
import type { HeartbeatProber } from "@egress-nat/founat";

const TIMEOUT_MS = 500;

/** Asks gateways by their addresses. @returns of each that answers whether it has its way out */
export type AskUplinks = (
  gateways: readonly (readonly string[])[],
  signal: AbortSignal,
) => Promise<readonly boolean[]>;

export function askUplinksBy(prober: Pick<HeartbeatProber, "probe">): AskUplinks {
  return async (gateways, signal) => {
    const options = { timeoutMs: TIMEOUT_MS, signal };
    const answers = await Promise.all(
      gateways.flat().map((address) => prober.probe(address, HEARTBEAT_PORT, [UPLINK_KEY], options)),
    );
    return answers.flatMap((values) => (values === undefined ? [] : !values.has(UPLINK_KEY)));
  };
}
