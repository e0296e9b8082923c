import { HEARTBEAT_PORT } from "@egress-nat/crds";
import { beforeAll, expect, test } from "vitest";
import type { PlacedPod } from "../bed/workload/gateways.ts";
import { type CraftedPacket, type Probe, type ProbePod, WHOAMI_PORT } from "../bed/workload/probe-pod.ts";
import { LISTENING_PORT, MALLORYS_SERVICE } from "./kit/cast.ts";
import { Ear, lateArrivals, uniqueText } from "./kit/evidence.ts";
import { addressesOf, type BothFamilies } from "./kit/internet.ts";
import { INTERNET_EGRESS, OFFICE_EGRESS } from "./kit/names.ts";
import { describeOnline, gatewaysOf, player, serviceOf } from "./kit/world.ts";

const FAMILIES = ["ipv4", "ipv6"] as const;
/** The port that crafted datagrams come from. */
const CRAFTED_SOURCE_PORT = 4444;
/** For programs in emulated nodes, which may stand still for seconds. */
const PATIENCE = { timeout: 30_000 };

describeOnline("a client stays a client", (internet) => {
  let alice: ProbePod;
  let bob: ProbePod;
  let mallory: ProbePod;
  let gateways: readonly PlacedPod[];
  let vias: readonly BothFamilies[];

  beforeAll(async () => {
    [alice, bob, mallory, gateways] = await Promise.all([
      player("alice"),
      player("bob"),
      player("mallory"),
      gatewaysOf(INTERNET_EGRESS),
    ]);
    vias = [await serviceOf(INTERNET_EGRESS), ...gateways];
  });

  test("FoU of its own making comes out with the gateway's address, as its other packets do", async () => {
    const text = uniqueText("own");
    await alice.ask(wrappedFor(alice, internet.wide, text));
    await lateArrivals(alice, internet);
    const allowed = addressesOf(...gateways);
    await expect.poll(() => internet.sendersOf(text), PATIENCE).toHaveLength(FAMILIES.length * vias.length);
    const senders = await internet.sendersOf(text);
    expect(allowed).toEqual(expect.arrayContaining(senders));
  });

  test("with another client's address as inner source it gets nothing", async () => {
    const text = uniqueText("bobs");
    await alice.ask(wrappedFor(bob, internet.wide, text));
    await lateArrivals(alice, internet);
    expect(await internet.sendersOf(text)).toEqual([]);
  });

  test("with FoU of its own making it reaches no destination that its Egress is not for", async () => {
    const [privately, widely] = [uniqueText("private"), uniqueText("wide")];
    const carol = await player("carol");
    const office = [await serviceOf(OFFICE_EGRESS), ...(await gatewaysOf(OFFICE_EGRESS))];
    await alice.ask(wrappedFor(alice, internet.narrow, privately));
    await carol.ask([
      ...wrappedFor(carol, internet.narrow, privately, WHOAMI_PORT, office),
      ...wrappedFor(carol, internet.wide, widely, WHOAMI_PORT, office),
    ]);
    await Promise.all([alice, carol].map((client) => lateArrivals(client, internet)));
    const sendersOf = () => internet.sendersOf(privately);
    await expect.poll(sendersOf, PATIENCE).toHaveLength(FAMILIES.length * office.length);
    const senders = await sendersOf();
    expect(addressesOf(...office)).toEqual(expect.arrayContaining(senders));
    expect(await internet.sendersOf(widely)).toEqual([]);
  });

  test("with FoU of its own making it reaches no pod and no Service", async () => {
    const ear = await Ear.open(mallory, LISTENING_PORT);
    const service = await serviceOf(MALLORYS_SERVICE.metadata);
    const text = uniqueText("inside");
    await alice.ask([mallory, service].flatMap((target) => wrappedFor(alice, target, text, LISTENING_PORT)));
    await ear.hears(alice);
    await ear.hears(alice, service);
    expect(await ear.sendersOf(text)).toEqual([]);
  });

  test("with FoU of its own making it does not reach the metadata address of the gateway's node", async () => {
    const [control, text] = [uniqueText("bystander"), uniqueText("client")];
    await mallory.seenBy([internet.metadata], control);
    await alice.ask(
      vias.map((via) => ({
        do: "fou" as const,
        via: via.ipv4,
        source: alice.ipv4,
        destination: internet.metadata,
        port: WHOAMI_PORT,
        text,
      })),
    );
    await lateArrivals(alice, internet);
    expect(await internet.sendersOf(text)).toEqual([]);
    expect(await internet.sendersOf(control)).toEqual([mallory.ipv4]);
  });

  test("with FoU of its own making it reaches no socket of a gateway", async () => {
    const [direct, tunnelled] = [heartbeatRequest("directly"), heartbeatRequest("tunnelled")];
    const ear = await Ear.open(alice, CRAFTED_SOURCE_PORT);
    const answers = await alice.ask([
      ...gateways.flatMap((gateway) =>
        FAMILIES.map((family): Probe => {
          return { do: "udp", address: gateway[family], port: HEARTBEAT_PORT, text: direct, timeout: 20 };
        }),
      ),
      ...gateways.flatMap((gateway) => wrappedFor(alice, gateway, tunnelled, HEARTBEAT_PORT)),
    ]);
    await lateArrivals(alice, internet);
    // The gateway's heartbeat answers anybody who asks it directly; through the tunnel it does not hear the question.
    expect(answers.filter((answer) => JSON.stringify(answer).includes("directly"))).toHaveLength(
      2 * gateways.length,
    );
    await ear.hears(mallory);
    expect(await ear.sendersOf("tunnelled")).toEqual([]);
  });

  test("a socket bound to the uplink sends nothing around the tunnel", async () => {
    const device = "eth0";
    const addresses = [internet.wide.ipv4, internet.wide.ipv6];
    const packets = await internet.packetsFrom([alice, mallory], async () => {
      const answers = await alice.ask(
        addresses.flatMap((address): Probe[] => [
          { do: "udp", address, port: WHOAMI_PORT, text: "bound", device },
          { do: "tcp", address, port: WHOAMI_PORT, device },
        ]),
      );
      expect(answers).toEqual(Array(4).fill({ error: expect.any(String) }));
      await mallory.seenBy(addresses);
      await lateArrivals(alice, internet);
    });
    expect(packets).toEqual([0, expect.toSatisfy((count: number) => count > 0)]);
  });

  /** The datagram in FoU, to the Service and to each gateway, by default the internet Egress's. */
  function wrappedFor(
    source: BothFamilies,
    destination: BothFamilies,
    text: string,
    port = WHOAMI_PORT,
    targets = vias,
  ): CraftedPacket[] {
    return targets.flatMap((via) =>
      FAMILIES.map((family) => ({
        do: "fou" as const,
        via: via[family],
        source: source[family],
        destination: destination[family],
        port,
        text,
      })),
    );
  }
});

/** A heartbeat request without keys; the gateway echoes its nonce. */
function heartbeatRequest(nonce: string): string {
  return `EGHB\u0001\u0001\u0000\u0000${nonce.padEnd(16, ".")}`;
}
