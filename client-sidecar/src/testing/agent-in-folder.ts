import { join } from "node:path";
import { HeartbeatProber } from "@egress-nat/founat";
import type { Transport } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";
import type { PodNetworks } from "../client/networks.ts";
import { Agent } from "../node-agent/agent.ts";
import { locationsIn } from "./locations.ts";

/** A node whose state is in a folder. */
export interface NodeInFolder {
  readonly nodeName: string;
  readonly folder: string;
  /** Of the product. */
  readonly namespace: string;
  /** UDP port on loopback that stands for every gateway's. */
  readonly gatewayPort: number;
}

/** Where the network namespaces of the node's pods are. */
export function netnsDirectory(folder: string): string {
  return join(folder, "netns");
}

export function agentInFolder(
  { nodeName, folder, namespace, gatewayPort }: NodeInFolder,
  transport: Transport,
  networks: PodNetworks,
): Agent {
  const prober = new HeartbeatProber();
  return new Agent({
    ...{ nodeName, namespace, transport, networks },
    prober: {
      probe: (_address, _port, keys, options) => prober.probe("127.0.0.1", gatewayPort, keys, options),
    },
    recordEvent: () => undefined,
    metrics: new Registry(),
    locations: locationsIn(folder),
    logger: createLogger({ name: "test", level: "silent" }),
  });
}
