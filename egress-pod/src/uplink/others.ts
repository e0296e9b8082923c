/** What other gateways of an Egress say of their way out. */

import { FAMILIES, type Family } from "@egress-nat/addresses";
import { HEARTBEAT_PORT, UPLINK_WORKS_KEYS } from "@egress-nat/crds";
import type { HeartbeatProber } from "@egress-nat/founat";
import type { GatewayEgress } from "../egress.ts";
import type { UplinkOptions } from "./uplink.ts";

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

/**
 * The other gateways of an Egress, as the operator has seen them last.
 *
 * @param own addresses of the gateway that asks
 */
export function othersOf(
  egress: () => GatewayEgress | undefined,
  own: readonly string[],
  ask: AskUplinks,
): Pick<UplinkOptions, "askOthers" | "isAlone"> {
  const others = () =>
    (egress()?.status?.gateways ?? []).filter(
      ({ addresses }) => !addresses.some((address) => own.includes(address)),
    );
  return {
    askOthers: (signal) => {
      // What a node reports of a gateway that is ready may be the node's own fault.
      const serving = others().filter(
        ({ state, reportedBy }) => state === "Ready" || reportedBy !== undefined,
      );
      return ask(
        serving.map(({ addresses }) => addresses),
        signal,
      );
    },
    isAlone: () => others().length === 0,
  };
}
