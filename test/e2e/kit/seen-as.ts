import { expect } from "vitest";
import type { PlacedPod } from "../../bed/workload/gateways.ts";
import type { ProbePod } from "../../bed/workload/probe-pod.ts";
import { addressesOf, type Internet } from "./internet.ts";

/** Where the agent picks gateways, new flows leave one that does not answer for a moment, and come back. */
const LONGER_THAN_A_STALL = { timeout: 60_000 };

/** The internet sees all flows of a client, of each family, come from one gateway. */
export async function seenAsGateway(
  client: ProbePod,
  internet: Internet,
  gateways: readonly PlacedPod[],
): Promise<void> {
  const seen = async () => {
    const [v4, v6] = await client.seenBy(addressesOf(internet.wide));
    expect(gateways.map(({ ipv4 }) => ipv4)).toContain(v4?.tcp);
    expect(gateways.map(({ ipv6 }) => ipv6)).toContain(v6?.tcp);
    return [v4?.udp === v4?.tcp, v6?.udp === v6?.tcp];
  };
  await expect.poll(seen, LONGER_THAN_A_STALL).toEqual([true, true]);
}
