import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Gateway } from "../gateway/gateway.ts";
import { prepareGatewayNetns } from "../gateway/netns.ts";
import { clientConfig, egress, gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import { addressOf, ask, buildTopology, destroyTopology, kernelOf } from "../testing/topology.ts";
import { Client } from "./client.ts";

const client = () => new Client({ kernel: kernelOf("client"), logger: silent });
const gateway = new Gateway(gatewayConfig(), { kernel: kernelOf("gateway"), logger: silent });

beforeAll(async () => {
  await buildTopology();
  await prepareGatewayNetns(kernelOf("gateway"));
  await gateway.init();
  await gateway.sync([gatewayClient("client")]);
});

afterAll(destroyTopology);

describe.each(["ipv4", "ipv6"] as const)("%s", (family) => {
  const internet = addressOf("internet", family);
  const viaGateway = addressOf("gateway", family);

  test("without Egresses the outside sees the client's own address", async () => {
    expect(await ask("client", "tcp", internet)).toBe(addressOf("client", family));
  });

  test("a client's TCP and UDP leave with the gateway's address", async () => {
    await client().apply(clientConfig(egress()));
    expect(await ask("client", "tcp", internet)).toBe(viaGateway);
    expect(await ask("client", "udp", internet)).toBe(`${viaGateway} 5`);
    await client().remove();
  });
});
