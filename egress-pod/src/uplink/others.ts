/** What other gateways of an Egress say of their way out. */

import { FAMILIES, type Family } from "@egress-nat/addresses";
import { HEARTBEAT_PORT, UPLINK_WORKS_KEYS } from "@egress-nat/crds";
import type { HeartbeatProber } from "@egress-nat/founat";

const TIMEOUT_MS = 500;

/** Asks gateways by their addresses. @returns the families in which any of them has its way out */
export type AskUplinks = (
  gateways: readonly (readonly string[])[],
  signal: AbortSignal,
) => Promise<ReadonlySet<Family>>;

/** Who does not answer, or is of a version that does not know the question, vouches for nothing. */
export function askUplinksBy(prober: Pick<HeartbeatProber, "probe">): AskUplinks {
  return async (gateways, signal) => {
    const options = { timeoutMs: TIMEOUT_MS, signal };
    const keys = Object.values(UPLINK_WORKS_KEYS);
    const answers = await Promise.all(
      gateways
        .flat()
        .map((address) => prober.probe(address, HEARTBEAT_PORT, keys, options).catch(() => undefined)),
    );
    return new Set(
      FAMILIES.filter((family) => answers.some((values) => values?.has(UPLINK_WORKS_KEYS[family]))),
    );
  };
}
