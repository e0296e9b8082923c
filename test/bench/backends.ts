/** Both backends of a gateway beside each other, in one run. */

import type { GatewayBackend } from "@egress-nat/founat";
import { type Findings, joined, ratioOfPairs, type Series } from "./report.ts";
import type { Samples } from "./samples.ts";

/** How many clients a gateway has where its backends are compared. */
const CLIENT_COUNTS = [1, 100, 10_000] as const;

/** One figure of both, each taken in turn with the other's. */
interface BackendSamples extends Pick<Series, "name" | "unit"> {
  readonly samples: Readonly<Record<GatewayBackend, Samples>>;
}

/** @param measure takes samples of gateways with so many clients */
export async function compareBackends(
  measure: (clients: number) => Promise<readonly BackendSamples[]>,
): Promise<Findings> {
  const findings: Findings[] = [];
  for (const clients of CLIENT_COUNTS) {
    const figures = await measure(clients);
    findings.push(...figures.map((figure) => findingsOf(figure, clients)));
  }
  return joined(findings);
}

function findingsOf({ name, unit, samples }: BackendSamples, clients: number): Findings {
  const what = `${name} at ${clients.toLocaleString("en")}`;
  const nftables = { name: `${what}: nftables`, unit, samples: samples.nftables };
  const iptables = { name: `${what}: iptables`, unit, samples: samples.iptables };
  return {
    series: [nftables, iptables],
    targets: [ratioOfPairs(`${what}: iptables / nftables`, iptables, nftables)],
  };
}
