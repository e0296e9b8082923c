import { afterAll, beforeAll, expect, test } from "vitest";
import { probePod } from "../bed/workload/manifests.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import { egressIn } from "./kit/egress.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { client, describeOnline, gatewaysOf, gatewaysReady, kubectl, world } from "./kit/world.ts";

const V4 = { namespace: INTERNET_EGRESS.namespace, name: "v4" };
const V6 = { namespace: INTERNET_EGRESS.namespace, name: "v6" };

const egresses = [
  egressIn(world, V4, { destinations: ["0.0.0.0/0"], replicas: 1 }),
  egressIn(world, V6, { destinations: ["::/0"], replicas: 1 }),
];
const clients = [V4, V6].map((name) => probePod(client(`client-${name.name}`, name)));

// Dual stack is what all other cases are about.
describeOnline("an Egress of one address family", (internet) => {
  beforeAll(async () => {
    await kubectl.apply(...egresses);
    await Promise.all([V4, V6].map(gatewaysReady));
    await kubectl.apply(...clients);
  });

  afterAll(() => kubectl.delete([...clients, ...egresses], { wait: false }));

  test("for IPv4 takes IPv4 through the gateway and leaves IPv6 as it was", async () => {
    const client = await ProbePod.ready(kubectl, NAMESPACE, "client-v4");
    const [gateway] = await gatewaysOf(V4);
    expect(await client.seenBy([internet.wide.ipv4, internet.wide.ipv6])).toEqual([
      { tcp: gateway?.ipv4, udp: gateway?.ipv4 },
      { tcp: client.ipv6, udp: client.ipv6 },
    ]);
  });

  test("for IPv6 takes IPv6 through the gateway and leaves IPv4 as it was", async () => {
    const client = await ProbePod.ready(kubectl, NAMESPACE, "client-v6");
    const [gateway] = await gatewaysOf(V6);
    expect(await client.seenBy([internet.wide.ipv4, internet.wide.ipv6])).toEqual([
      { tcp: client.ipv4, udp: client.ipv4 },
      { tcp: gateway?.ipv6, udp: gateway?.ipv6 },
    ]);
  });
});
