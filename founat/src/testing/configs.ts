import { FAMILIES, type Family } from "@egress-nat/addresses";
import type { ClientConfig, ClientEgress } from "../client/config.ts";
import type { ClientFacts } from "../client/plan.ts";
import type { GatewayClient, GatewayConfig } from "../gateway/config.ts";
import { planGateway } from "../gateway/plan.ts";
import type { GatewayPolicy } from "../gateway/policy.ts";
import { ADDRESSES, addressOf, CLUSTER_RANGES } from "./topology.ts";

/** An Egress to everywhere, by way of the Service. */
export function egress(changes: Partial<ClientEgress> = {}): ClientEgress {
  return {
    name: "internet-egress/nat",
    destinations: ["0.0.0.0/0", "::/0"],
    excluded: [],
    gateways: [ADDRESSES.service ?? {}],
    peers: [...Object.values(ADDRESSES.service ?? {}), ...Object.values(ADDRESSES.gateway ?? {})],
    port: 5555,
    sourcePortAuto: false,
    originatingOnly: true,
    ...changes,
  };
}

export function clientConfig(...egresses: readonly ClientEgress[]): ClientConfig {
  return { uplink: "eth0", egresses, clusterRanges: CLUSTER_RANGES };
}

/** What there is in the network namespace of a pod that has never been a client. */
export const clientFacts: ClientFacts = {
  uplink: { name: "eth0", mtu: 1500, addresses: { ipv4: "10.244.2.7", ipv6: "fd00:244:2::7" } },
  ...{ mainRoutes: [], forget: [], needsAdvertisements: false, families: FAMILIES, pins: new Map() },
  ways: [],
};

export function gatewayConfig(changes: Partial<GatewayConfig> = {}): GatewayConfig {
  return {
    port: 5555,
    sourcePortAuto: false,
    destinations: ["0.0.0.0/0", "::/0"],
    excluded: CLUSTER_RANGES,
    ...changes,
  };
}

/** What the packet filter of a gateway of IPv4 is told. */
export function gatewayPolicyOf(changes: Partial<GatewayConfig>): GatewayPolicy {
  const uplink = { name: "eth0", mtu: 1500, addresses: { ipv4: addressOf("gateway", "ipv4") } };
  return planGateway(gatewayConfig(changes), { uplink, marksWayBack: true }).policy;
}

export function gatewayClient(role: "client" | "neighbour"): GatewayClient {
  const families: Family[] = ["ipv4", "ipv6"];
  return { id: role, addresses: families.map((family) => addressOf(role, family)) };
}

export const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined };
