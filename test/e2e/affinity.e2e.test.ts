import { describe, expect, test } from "vitest";
import { z } from "zod";
import { waitUntil } from "../system/wait-until.ts";
import { type EgressName, egress } from "../workload/manifests.ts";
import { type Probe, WHOAMI_PORT } from "../workload/probe-pod.ts";
import { INTERNET_EGRESS } from "./kit/names.ts";
import { describeOnline, kubectl, player } from "./kit/world.ts";

const CONNECTIONS = 20;

const Affinity = z.object({
  spec: z.object({
    sessionAffinity: z.string(),
    sessionAffinityConfig: z.object({ clientIP: z.object({ timeoutSeconds: z.int() }) }),
  }),
});

describeOnline("session affinity", (internet) => {
  test.each(["ipv4", "ipv6"] as const)("keeps all %s flows of a client on one gateway", async (family) => {
    const alice = await player("alice");
    const connections = Array.from({ length: CONNECTIONS }, (): Probe => {
      return { do: "tcp", address: internet.wide[family], port: WHOAMI_PORT };
    });
    const answers = await alice.ask(connections);
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toHaveLength(1);
    expect(answers[0]).toHaveProperty("answer");
  });
});

describe("the Service of an Egress", () => {
  test("has an affinity of three hours unless the Egress says otherwise", async () => {
    expect(await affinityTimeoutOf(INTERNET_EGRESS)).toBe(10_800);
  });

  test("has the affinity timeout that the Egress asks for", async () => {
    const name = { namespace: INTERNET_EGRESS.namespace, name: "half-a-day" };
    const object = egress(name, {
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
