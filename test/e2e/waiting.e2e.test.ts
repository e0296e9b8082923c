import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { scriptPod } from "../bed/workload/manifests.ts";
import { egressIn } from "./kit/egress.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { client, gatewaysReady, kubectl, podEvent, world } from "./kit/world.ts";

const GHOST = { namespace: INTERNET_EGRESS.namespace, name: "ghost" };

const object = egressIn(world, GHOST, { destinations: ["198.51.100.0/24"], replicas: 0 });
const pod = scriptPod(client("patient", GHOST), "sleep infinity");

const Waiting = z.object({
  status: z.object({
    containerStatuses: z.tuple([
      z.object({
        state: z.object({
          waiting: z.object({ reason: z.string() }).optional(),
          running: z.object({ startedAt: z.iso.datetime().transform((text) => new Date(text)) }).optional(),
        }),
      }),
    ]),
  }),
});

const GatewayReady = z.object({
  items: z.tuple([
    z.object({
      status: z.object({
        conditions: z.array(
          z.object({
            type: z.string(),
            lastTransitionTime: z.iso.datetime().transform((text) => new Date(text)),
          }),
        ),
      }),
    }),
  ]),
});

describe("a pod waits in ContainerCreating", () => {
  afterAll(() => kubectl.delete([pod, object], { wait: false }));

  test("for an Egress that does not exist, and an event says so", async () => {
    await kubectl.apply(pod);
    await podEvent(pod, /ghost.*not (exist|found)/i);
    expect(await containerState()).toEqual({ waiting: { reason: "ContainerCreating" } });
  });

  test("for an Egress without gateways, and an event says so", async () => {
    await kubectl.apply(object);
    await podEvent(pod, /ghost.*no (ready )?gateway/i);
    expect(await containerState()).toEqual({ waiting: { reason: "ContainerCreating" } });
  });

  test("and starts by itself within 30 seconds after the first gateway is ready", async () => {
    await kubectl.run(["scale", "egress", GHOST.name, "-n", GHOST.namespace, "--replicas=1"]);
    await gatewaysReady(GHOST);
    await kubectl.wait(["pod", pod.metadata.name, "-n", NAMESPACE], "condition=Ready");
    const { running } = await containerState();
    const gateways = await kubectl.get(
      GatewayReady,
      "pods",
      "-n",
      GHOST.namespace,
      "-l",
      `coil.cybozu.com/egress=${GHOST.name}`,
    );
    const ready = gateways.items[0].status.conditions.find(({ type }) => type === "Ready");
    const seconds =
      ((running?.startedAt.getTime() ?? Infinity) - (ready?.lastTransitionTime.getTime() ?? 0)) / 1000;
    expect(seconds).toBeLessThanOrEqual(30);
  });

  async function containerState(): Promise<
    z.infer<typeof Waiting>["status"]["containerStatuses"][0]["state"]
  > {
    const { status } = await kubectl.get(Waiting, "pod", pod.metadata.name, "-n", NAMESPACE);
    return status.containerStatuses[0].state;
  }
});
