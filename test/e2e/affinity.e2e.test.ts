import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { EgressName } from "../bed/workload/manifests.ts";
import { type Probe, WHOAMI_PORT } from "../bed/workload/probe-pod.ts";
import { egressIn } from "./kit/egress.ts";
import { addressesOf } from "./kit/internet.ts";
import { INTERNET_EGRESS } from "./kit/names.ts";
import { describeOnline, gatewaysOf, kubectl, player, world } from "./kit/world.ts";

const CLIENTS = ["alice", "bob", "carol"] as const;
/** Of each protocol, at once. */
const FLOWS = 10;

const Affinity = z.object({
  spec: z.object({
    sessionAffinity: z.string(),
    sessionAffinityConfig: z.object({ clientIP: z.object({ timeoutSeconds: z.int() }) }),
  }),
});

describeOnline("session affinity", (internet) => {
  test.each(CLIENTS)("keeps all flows of %s on one gateway", async (name) => {
    const client = await player(name);
    for (const family of ["ipv4", "ipv6"] as const) {
      const address = internet.wide[family];
      const flows = Array.from({ length: FLOWS }, (): Probe[] => [
        { do: "tcp", address, port: WHOAMI_PORT },
        { do: "udp", address, port: WHOAMI_PORT, text: "who am I" },
      ]).flat();
      const answers = [...(await client.ask(flows)), ...(await client.ask(flows))];
      expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toHaveLength(1);
      expect(answers[0]).toHaveProperty("answer");
    }
  });

  test.runIf(world.selection === "Agent")(
    "keeps both families of a client on one gateway where the agent picks it",
    async () => {
      const gateways = await gatewaysOf(INTERNET_EGRESS);
      for (const name of CLIENTS) {
        const [v4, v6] = await (await player(name)).seenBy(addressesOf(internet.wide));
        expect(gateways.find(({ ipv4 }) => ipv4 === v4?.tcp)?.ipv6).toBe(v6?.tcp);
      }
    },
  );
});

describe("the Service of an Egress", () => {
  test("has an affinity of three hours unless the Egress says otherwise", async () => {
    expect(await affinityTimeoutOf(INTERNET_EGRESS)).toBe(10_800);
  });

  test("has the affinity timeout that the Egress asks for", async () => {
    const name = { namespace: INTERNET_EGRESS.namespace, name: "half-a-day" };
    const object = egressIn(world, name, {
      destinations: ["203.0.113.0/24"],
      replicas: 0,
      sessionAffinity: "ClientIP",
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 43_200 } },
    });
    await kubectl.apply(object);
    try {
      expect(await affinityTimeoutOf(name)).toBe(43_200);
    } finally {
      await kubectl.delete([object]);
    }
  });
});

function affinityTimeoutOf({ namespace, name }: EgressName): Promise<number> {
  return waitUntil(
    async () => {
      const { spec } = await kubectl.get(Affinity, "service", name, "-n", namespace);
      return spec.sessionAffinity === "ClientIP" && spec.sessionAffinityConfig.clientIP.timeoutSeconds;
    },
    { what: `the Service of Egress ${namespace}/${name}`, timeoutMs: 30_000, intervalMs: 500 },
  );
}
