import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import type { Manifest } from "../workload/kubectl.ts";
import { clientOf, type EgressName, egress, scriptPod } from "../workload/manifests.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { gatewaysReady, kubectl, podEvent, world } from "./kit/world.ts";

const SPEC = { destinations: ["198.51.100.0/24"] };
const { namespace } = INTERNET_EGRESS;
/** Does not exist at first. */
const GHOST = { namespace, name: "ghost" };
/** Has no gateways at first. */
const SLEEPER = { namespace, name: "sleeper" };

const common = { namespace: NAMESPACE, image: world.image };
const ghostsClient = scriptPod(
  { ...common, name: "ghosts-client", annotations: clientOf(GHOST) },
  "sleep infinity",
);
const sleepersClient = scriptPod(
  { ...common, name: "sleepers-client", annotations: clientOf(SLEEPER) },
  "sleep infinity",
);

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
  beforeAll(() => kubectl.apply(egress(SLEEPER, { ...SPEC, replicas: 0 }), ghostsClient, sleepersClient));

  afterAll(() =>
    kubectl.delete([ghostsClient, sleepersClient, egress(GHOST, SPEC), egress(SLEEPER, SPEC)], {
      wait: false,
    }),
  );

  test("for an Egress that does not exist, and an event says so", async () => {
    await podEvent(ghostsClient, /ghost.*not (exist|found)/i);
    expect(await containerState(ghostsClient)).toEqual({ waiting: { reason: "ContainerCreating" } });
  });

  test("for an Egress without gateways, and an event says so", async () => {
    await podEvent(sleepersClient, /sleeper.*no (ready )?gateway/i);
    expect(await containerState(sleepersClient)).toEqual({ waiting: { reason: "ContainerCreating" } });
  });

  test("and starts by itself within 30 seconds after the first gateway is ready", async () => {
    await kubectl.apply(egress(GHOST, SPEC));
    await kubectl.run(["scale", "egress", SLEEPER.name, "-n", SLEEPER.namespace, "--replicas=1"]);
    expect(await secondsToStart(ghostsClient, GHOST)).toBeLessThanOrEqual(30);
    expect(await secondsToStart(sleepersClient, SLEEPER)).toBeLessThanOrEqual(30);
  });
});

/** From the moment when the Egress's gateway is ready, rounded to seconds as Kubernetes does. */
async function secondsToStart(client: Manifest, egress: EgressName): Promise<number> {
  await gatewaysReady(egress);
  await kubectl.wait(["pod", client.metadata.name, "-n", NAMESPACE], "condition=Ready");
  const { running } = await containerState(client);
  const gateways = await kubectl.get(
    GatewayReady,
    "pods",
    "-n",
    egress.namespace,
    "-l",
    `coil.cybozu.com/egress=${egress.name}`,
  );
  const ready = gateways.items[0].status.conditions.find(({ type }) => type === "Ready");
  return ((running?.startedAt.getTime() ?? Infinity) - (ready?.lastTransitionTime.getTime() ?? 0)) / 1000;
}

async function containerState(
  client: Manifest,
): Promise<z.infer<typeof Waiting>["status"]["containerStatuses"][0]["state"]> {
  const { status } = await kubectl.get(Waiting, "pod", client.metadata.name, "-n", NAMESPACE);
  return status.containerStatuses[0].state;
}
