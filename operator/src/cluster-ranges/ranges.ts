/** The networks of the cluster, from all that says something of them. */

import { aggregate, formatCidr, parseCidr } from "@egress-nat/addresses";
import type { NodeHead, ServiceAddresses, ServiceCidr } from "./sources.ts";

export interface ClusterFacts {
  /** CIDRs that the administrator names. */
  readonly configured: readonly string[];
  readonly serviceCidrs: readonly ServiceCidr[];
  readonly nodes: readonly NodeHead[];
  /** None where their addresses are not to count. */
  readonly services: readonly ServiceAddresses[];
}

/** By what said it: CIDRs and addresses. */
export type RangesBySource = ReturnType<typeof rangesBySource>;

export function rangesBySource({ configured, serviceCidrs, nodes, services }: ClusterFacts) {
  return {
    values: configured,
    services: serviceCidrs.flatMap(({ spec }) => spec.cidrs),
    pods: nodes.flatMap(({ spec }) => spec.podCIDRs),
    nodes: nodes.flatMap(({ status }) => status.addresses),
    serviceAddresses: services.flatMap(({ addresses }) => addresses),
  };
}

/** As few networks as can be: each node that comes or goes is told to all agents and gateways. */
export function clusterRanges(sources: RangesBySource): string[] {
  const texts = Object.values(sources).flat();
  return aggregate(texts.flatMap((text) => parseCidr(text) ?? [])).map(formatCidr);
}
