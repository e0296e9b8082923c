/** The network namespaces around one router: clients, gateways, and what they reach. */

import type { ClientGateway } from "@egress-nat/founat";

/** How many gateways share the flows of a client. */
const GATEWAY_COUNTS = [1, 2, 16, 64] as const;

export const SERVICE = { ipv4: "10.96.0.10", ipv6: "fd00:96::10" } as const;

interface Picking extends ReturnType<typeof end> {
  readonly name: string;
  readonly gateways: readonly ClientGateway[];
}

/** The one behind the Service. */
export const FIRST_GATEWAY = gateway(0);

export const GATEWAYS = Array.from({ length: Math.max(...GATEWAY_COUNTS) }, (_, index) => gateway(index));

/** The client that reaches the first gateway by its Service. */
export const SERVED = end("served", 1, 0);

/** Clients that pick for themselves, by what they pick. */
export const PICKING: readonly Picking[] = [
  // With the default session affinity: one for all flows, and the one after it in reserve.
  {
    name: "one for the client",
    ...end("picking", 1, 1),
    gateways: [gateway(0), { ...gateway(1), flows: "spare" }],
  },
  ...GATEWAY_COUNTS.map((count, index) => ({
    ...{ name: `one of ${count} for each flow`, ...end(`picking-${count}`, 1, index + 2) },
    gateways: GATEWAYS.slice(0, count),
  })),
];

export const CLIENTS = [SERVED, ...PICKING];

function gateway(index: number) {
  return end(`gateway-${index}`, 2, index);
}

/** Each in a network of its own. */
function end(netns: string, kind: number, index: number) {
  return { netns, ipv4: `10.${kind}.${index}.2`, ipv6: `fd00:${kind}:${index.toString(16)}::2` };
}
