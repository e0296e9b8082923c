/** A client that has two gateways, and flows that go on while it changes them. */

import type { Family } from "@egress-nat/addresses";
import { beforeAll } from "vitest";
import type { Client } from "../client/client.ts";
import type { ClientConfig, ClientGateway } from "../client/config.ts";
import { Gateway } from "../gateway/gateway.ts";
import { prepareGatewayNetns } from "../gateway/netns.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "./configs.ts";
import { useClientAndGateway } from "./data-path.ts";
import { ADDRESSES, addressOf, inside, kernelOf } from "./topology.ts";

/** Gateways by where they are; the Service leads to the first. */
export const first: ClientGateway = ADDRESSES.gateway ?? {};
export const second: ClientGateway = ADDRESSES.stranger ?? {};
export const service: ClientGateway = ADDRESSES.service ?? {};
export const leaving = (gateway: ClientGateway): ClientGateway => ({ ...gateway, flows: "existing" });

export const LIVE = { times: 20, pause: 0.1, timeout: 5, lasts: "/run/live-flows" };

/** Makes the topology for the tests of a file. */
export function useTwoGateways(): {
  readonly client: Client;
  readonly use: (...gateways: readonly ClientGateway[]) => Promise<unknown>;
} {
  const { client } = useClientAndGateway();
  beforeAll(async () => {
    const other = new Gateway(gatewayConfig(), { kernel: kernelOf("stranger"), logger: silent });
    await prepareGatewayNetns(kernelOf("stranger"));
    await other.init();
    await other.sync([gatewayClient("client")]);
  });
  return { client, use: (...gateways) => client.apply(configured(...gateways)) };
}

export function configured(...gateways: readonly ClientGateway[]): ClientConfig {
  const peers = [first, second, service].flatMap(({ ipv4 = "", ipv6 = "" }) => [ipv4, ipv6]);
  return clientConfig(egress({ gateways, peers }));
}

/** The gateway that an answer tells of. */
export function whose(family: Family, answer: string): string {
  const [source = ""] = answer.split(" ");
  const role = ["gateway", "stranger"].find((each) => addressOf(each, family) === source);
  return role === undefined ? answer : role === "gateway" ? "first" : "second";
}

/** Talks by {@link LIVE} for as long as something is done, and a while longer. */
export async function meanwhile<T>(talk: () => Promise<T>, work: () => Promise<unknown>): Promise<T> {
  await inside("client", `touch ${LIVE.lasts}`);
  const talking = talk();
  try {
    await work();
  } finally {
    await inside("client", `rm ${LIVE.lasts}`);
  }
  return talking;
}
