import { afterAll, beforeAll } from "vitest";
import { Client } from "../client/client.ts";
import { Gateway } from "../gateway/gateway.ts";
import { prepareGatewayNetns } from "../gateway/netns.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "./configs.ts";
import { buildTopology, destroyTopology, kernelOf } from "./topology.ts";

/** A client that uses the gateway for everything. */
export const everywhere = clientConfig(egress());

/**
 * Makes the topology for the tests of a file, with a gateway that knows the client; the client's namespace is as it was
 * made until something is applied.
 */
export function useClientAndGateway(): { readonly client: Client; readonly gateway: Gateway } {
  const client = new Client({ kernel: kernelOf("client"), logger: silent });
  const gateway = new Gateway(gatewayConfig(), { kernel: kernelOf("gateway"), logger: silent });
  beforeAll(async () => {
    await buildTopology();
    await prepareGatewayNetns(kernelOf("gateway"));
    await gateway.init();
    await gateway.sync([gatewayClient("client")]);
  });
  afterAll(destroyTopology);
  return { client, gateway };
}
