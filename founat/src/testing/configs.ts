import type { Family } from "@egress-nat/addresses";
import type { ClientConfig, ClientEgress } from "../client/config.ts";
import type { GatewayClient, GatewayConfig } from "../gateway/config.ts";
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

export function gatewayConfig(changes: Partial<GatewayConfig> = {}): GatewayConfig {
  return {
    port: 5555,
    sourcePortAuto: false,
    destinations: ["0.0.0.0/0", "::/0"],
    excluded: CLUSTER_RANGES,
    ...changes,
  };
}

export function gatewayClient(role: "client" | "neighbour"): GatewayClient {
  const families: Family[] = ["ipv4", "ipv6"];
  return { id: role, addresses: families.map((family) => addressOf(role, family)) };
}

export const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined };
