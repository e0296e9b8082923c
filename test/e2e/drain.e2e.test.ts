import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { probePod } from "../bed/workload/manifests.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import { egressIn } from "./kit/egress.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { Transfers } from "./kit/transfers.ts";
import { client, describeOnline, gatewaysOf, gatewaysReady, kubectl, world } from "./kit/world.ts";

const DRAINED = { namespace: INTERNET_EGRESS.namespace, name: "drained" };

const object = egressIn(world, DRAINED, { destinations: ["0.0.0.0/0", "::/0"], replicas: 1 });
const pod = probePod(client("diver", DRAINED));

const Gateways = z.object({
  status: z.object({ gateways: z.array(z.object({ name: z.string(), state: z.string() })).default([]) }),
});

describeOnline("a gateway that is deleted", (internet) => {
  let transfers: Transfers;
  let former: string;

  beforeAll(async () => {
    await kubectl.apply(object);
    await gatewaysReady(DRAINED);
    await kubectl.apply(pod);
    transfers = await Transfers.start(internet, [await ProbePod.ready(kubectl, NAMESPACE, "diver")]);
    former = (await gatewaysOf(DRAINED))[0]?.name ?? "";
  });
  afterAll(() => kubectl.delete([pod, object], { wait: false }));

  test("serves the flows that it has, beside the one that comes for it", async () => {
    await kubectl.run(["delete", "pod", former, "-n", DRAINED.namespace, "--wait=false"]);
    await waitUntil(async () => (await states()).get(former) === "Draining", {
      what: `gateway ${former} to be seen draining`,
      timeoutMs: 30_000,
      intervalMs: 500,
    });
    await waitUntil(async () => [...(await states()).values()].includes("Ready"), {
      what: "another gateway to be ready",
      timeoutMs: 180_000,
      intervalMs: 1000,
    });
    await transfers.goOn();
    expect((await states()).get(former)).toBe("Draining");
  });

  test("ends when its last flow is over, and its client has the other one", async () => {
    await transfers.stop();
    await kubectl.run(["wait", "--for=delete", `pod/${former}`, "-n", DRAINED.namespace, "--timeout=90s"], {
      timeoutMs: 100_000,
    });
    const [gateway] = await gatewaysOf(DRAINED);
    const diver = await ProbePod.ready(kubectl, NAMESPACE, "diver");
    const { ipv4, ipv6 } = internet.wide;
    await waitUntil(
      async () => {
        const seen = await diver.seenBy([ipv4, ipv6]);
        return seen.every(({ tcp }) => tcp === gateway?.ipv4 || tcp === gateway?.ipv6);
      },
      { what: "diver to be seen as the other gateway", timeoutMs: 30_000, intervalMs: 1000 },
    );
  });

  async function states(): Promise<ReadonlyMap<string, string>> {
    const { status } = await kubectl.get(Gateways, "egress", DRAINED.name, "-n", DRAINED.namespace);
    return new Map(status.gateways.map(({ name, state }) => [name, state]));
  }
});
