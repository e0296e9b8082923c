/** The network namespaces around one router: clients, gateways, and what they reach. */

/** How many gateways each client with Agent selection has, beside the one with Service selection. */
const GATEWAY_COUNTS = [1, 2, 16, 64] as const;

export const SERVICE = { ipv4: "10.96.0.10", ipv6: "fd00:96::10" } as const;

/** The one behind the Service. */
export const FIRST_GATEWAY = gateway(0);

export const GATEWAYS = Array.from({ length: Math.max(...GATEWAY_COUNTS) }, (_, index) => gateway(index));

/** The client that reaches the first gateway by its Service. */
export const SERVED = end("served", 1, 0);

/** Clients that pick for themselves, by how many gateways they pick from. */
export const PICKING = new Map(
  GATEWAY_COUNTS.map((count, index) => [count, end(`picking-${count}`, 1, index + 1)]),
);

export const CLIENTS = [SERVED, ...PICKING.values()];

function gateway(index: number) {
  return end(`gateway-${index}`, 2, index);
}

/** Each in a network of its own. */
function end(netns: string, kind: number, index: number) {
  return { netns, ipv4: `10.${kind}.${index}.2`, ipv6: `fd00:${kind}:${index.toString(16)}::2` };
}
