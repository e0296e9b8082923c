import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeError } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AddRequest } from "../cni/protocol.ts";
import { RequestHandler } from "../node-agent/requests.ts";
import { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import { sliceClients } from "../slices/desired.ts";
import { addRequest } from "../testing/add-request.ts";
import { agentMetrics } from "../testing/agent-metrics.ts";
import { egress } from "../testing/egress.ts";
import { FakeNetworks } from "../testing/fake-networks.ts";
import { gateway } from "../testing/gateway.ts";
import { locationsIn } from "../testing/locations.ts";
import { Adder, type AdderOptions } from "./adder.ts";
import { livesOf } from "./lives.ts";
import type { RecordPodEvent } from "./pod.ts";
import { ClientRegistry } from "./registry.ts";

const NETNS = "/run/netns/cni-1";
const NAT = egress({ clientStartup: "Immediate" });

/** As the namespace of sandbox `number` should be. */
const of = (number: number) => ({ egresses: [{ name: `internet/nat-${number}` }] });
const logger = createLogger({ name: "test", level: "silent" });

let folders: string[];

beforeEach(() => {
  folders = [];
});

afterEach(() => {
  vi.useRealTimers();
  for (const folder of folders) rmSync(folder, { recursive: true });
});

/** An agent whose slices are written, and whose kernel is changed, when the test says so. */
function setUp(
  write: () => Promise<unknown> = async () => undefined,
  step?: () => Promise<unknown>,
  gatewayOf: Partial<Pick<AdderOptions, "ask" | "view" | "acknowledgeDeadlineMs">> = {},
) {
  const folder = mkdtempSync(join(tmpdir(), "egress-nat-add-"));
  folders.push(folder);
  const state = new NodeState(locationsIn(folder), logger);
  const registry = new ClientRegistry(state);
  const networks = new FakeNetworks(step);
  const metrics = agentMetrics();
  // Every gateway lets go at once: an address is free when its client has ended.
  const release = async () => {
    const held = new Set(registry.values().flatMap(({ addresses }) => addresses));
    for (const address of state.trustedAddresses()) if (!held.has(address)) state.removeTrusted(address);
  };
  const egressOf = ({ name }: { readonly name: string }) => ({ ...NAT, metadata: { ...NAT.metadata, name } });
  const view = {
    egress: egressOf,
    gateways: () => [],
    knowsGateways: () => true,
    hasEgressIn: () => true,
    vanishedGateways: () => [],
    pulse: () => "unknown" as const,
    place: { nodeName: "node", zone: undefined },
    clusterRanges: [],
  };
  const recordEvent = vi.fn<RecordPodEvent>();
  const lives = livesOf({
    ...{ registry, networks, logger },
    leftovers: { add: () => undefined },
    withdrawals: { scan: () => void release() },
  });
  const shared = { registry, view, networks, lives, recordEvent, metrics, logger };
  const adder = new Adder({
    ...{ ...shared, state },
    slices: {
      write: async () => {
        await write();
        return { uid: "slice", generation: 1 };
      },
    },
    ask: async () => "applied",
    lookUpPod: () => expect.fail("no pod is looked up"),
    reapply: () => undefined,
    ...gatewayOf,
  });
  const handler = new RequestHandler({
    ...{ ...shared, adder },
    reapplier: { reapply: () => undefined, isDue: () => false },
    started: Promise.resolve(),
    withdrawals: { withdraw: release },
  });
  return { networks, registry, recordEvent, handler, view };
}

/** The ADD of one sandbox after another, all in one network namespace, each with an address and an Egress of its own. */
function request(number: number, containerId = `c${number}`): AddRequest {
  return addRequest({
    containerId,
    netns: NETNS,
    addresses: [`10.244.0.${number}`],
    annotations: { "egress.coil.cybozu.com/internet": `nat-${number}` },
  });
}

const never = new AbortController().signal;

describe("an ADD that was given up while its slice was being written", () => {
  it.each([
    ["another container", "c2"],
    ["the same container", "c1"],
  ])("leaves the network namespace to %s that was added in it since", async (_, successor) => {
    const held = Promise.withResolvers<void>();
    const writes = [held.promise];
    const { networks, registry, handler } = setUp(() => writes.shift() ?? Promise.resolve());
    const plugin = new AbortController();
    const first = handler.handle(request(1), plugin.signal);
    await vi.waitFor(() => expect(networks.applied.has(NETNS)).toBe(true));
    plugin.abort(new DOMException("killed", "AbortError"));
    await handler.handle({ operation: "delete", records: [recordId(request(1))] }, never);
    await new Promise((resolve) => setTimeout(resolve, 2)); // no runtime is faster
    await handler.handle(request(2, successor), never);
    held.resolve();
    await expect(first).rejects.toThrow();
    expect(networks.applied.get(NETNS)).toMatchObject(of(2));
    expect(registry.get(recordId(request(2, successor)))).toMatchObject({ addresses: ["10.244.0.2"] });
  });

  it("leaves nothing in the network namespace where nobody came after it", async () => {
    const held = Promise.withResolvers<void>();
    const { networks, handler } = setUp(() => held.promise);
    const plugin = new AbortController();
    const only = handler.handle(request(1), plugin.signal);
    await vi.waitFor(() => expect(networks.applied.has(NETNS)).toBe(true));
    plugin.abort(new DOMException("killed", "AbortError"));
    held.resolve();
    await expect(only).rejects.toThrow("killed");
    expect(networks.applied.has(NETNS)).toBe(false);
  });
});

it("a network namespace is its last sandbox's, however late those before it are cleaned up", async () => {
  const sandbox = fc.record({
    containerId: fc.constantFrom("c1", "c2", "c3"),
    /** A runtime that was reset runs no DEL. */
    isDeleted: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(sandbox, { maxLength: 5 }), async (scheduler, given) => {
      vi.useFakeTimers({ toFake: ["Date"] });
      const chance = (what: string) => scheduler.schedule(Promise.resolve(), what);
      const { networks, registry, handler } = setUp(
        () => chance("slice"),
        () => chance("kernel"),
      );
      const givenUp: Promise<unknown>[] = [];
      const runtime = async () => {
        for (const [index, { containerId, isDeleted }] of given.entries()) {
          const plugin = new AbortController();
          const added = handler.handle(request(index, containerId), plugin.signal);
          givenUp.push(added.catch(() => undefined));
          await chance("kill");
          plugin.abort(new DOMException("killed", "AbortError"));
          const record = recordId(request(index, containerId));
          if (isDeleted) await handler.handle({ operation: "delete", records: [record] }, never);
          await chance("next");
          vi.advanceTimersByTime(5);
        }
        await handler.handle(request(99), never);
      };
      await scheduler.waitFor(runtime());
      await scheduler.waitFor(Promise.all(givenUp));
      expect(networks.applied.get(NETNS)).toMatchObject(of(99));
      expect(registry.owner(NETNS)).toMatchObject({ containerId: "c99" });
    }),
    { numRuns: 25 },
  );
});

it("while slices cannot be written, a client that is tried again and again keeps one address from others", async () => {
  const { registry, handler } = setUp(async () => {
    throw new KubeError("PATCH: 403 Forbidden", { code: "Forbidden", status: 403, retryable: false });
  });
  const added = vi.spyOn(registry, "add");
  for (const containerId of ["c1", "c2"]) {
    const addresses = [`10.244.0.${containerId.slice(1)}`];
    const tried = handler.handle({ ...request(1, containerId), addresses }, never);
    await expect(tried).rejects.toThrow("403 Forbidden");
  }
  expect(added.mock.calls.flatMap(([{ addresses }]) => addresses)).toEqual(["10.244.0.1"]);
});

it("while gateways do not acknowledge, a client that is tried again and again keeps one address from others", async () => {
  let answer: "silent" | "applied" = "silent";
  let asked = 0;
  const nat = egress({ clientStartup: "WaitForGateway" });
  const { view } = setUp();
  const { registry, handler } = setUp(undefined, undefined, {
    ask: async () => {
      asked += 1;
      return answer;
    },
    view: { ...view, egress: () => nat, gateways: () => [gateway()] },
    acknowledgeDeadlineMs: 10,
  });
  const added = vi.spyOn(registry, "add");
  for (let number = 1; number <= 3; number += 1) {
    const tried = handler.handle(request(number), never);
    await expect(tried).rejects.toThrow("no gateway of Egress internet/nat answered the heartbeat");
  }
  expect(added.mock.calls.flatMap(([{ addresses }]) => addresses)).toEqual(["10.244.0.1"]);
  answer = "applied";
  await handler.handle(request(4), never);
  expect(registry.values()).toMatchObject([{ addresses: ["10.244.0.4"] }]);
  asked = 0;
  await handler.handle({ ...request(5), netns: "/run/netns/cni-5" }, never);
  expect(asked).toBe(1);
});

describe("a second network of a client", () => {
  const first = request(1);
  const second = { ...request(1), network: "storage", ifname: "net1", addresses: ["192.0.2.1"] };
  const addressesOf = (registry: ClientRegistry) =>
    sliceClients(registry.values()).map(({ addresses }) => addresses);

  it("adds its addresses, and leaves the way to the gateways to the first", async () => {
    const { networks, registry, handler } = setUp();
    await handler.handle(first, never);
    await handler.handle(second, never);
    expect(addressesOf(registry)).toEqual([["10.244.0.1", "192.0.2.1"]]);
    expect(networks.applied.get(NETNS)).toMatchObject({ uplink: "eth0" });
    const { netns, addresses } = second;
    await handler.handle({ operation: "check", record: recordId(second), netns, addresses }, never);
  });

  it("takes nothing of the first with it", async () => {
    const { networks, registry, handler } = setUp();
    await handler.handle(first, never);
    await handler.handle(second, never);
    await handler.handle({ operation: "delete", records: [recordId(second)] }, never);
    expect(addressesOf(registry)).toEqual([["10.244.0.1"]]);
    expect(networks.applied.get(NETNS)).toMatchObject({ uplink: "eth0" });
  });

  it("that cannot be added leaves the first as it is", async () => {
    const failures = [undefined, new Error("apiserver is away")];
    const { networks, registry, handler } = setUp(async () => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
    });
    await handler.handle(first, never);
    await expect(handler.handle(second, never)).rejects.toThrow("away");
    expect(addressesOf(registry)).toEqual([["10.244.0.1"]]);
    expect(networks.applied.get(NETNS)).toMatchObject({ uplink: "eth0" });
  });

  it("may be of a family that the Egress lacks, and the first may not", async () => {
    const { registry, handler } = setUp();
    const addresses = ["2001:db8::1"];
    const refusal = { code: 100, message: expect.stringMatching(/only IPv4 destinations/) };
    await expect(handler.handle({ ...first, addresses }, never)).rejects.toMatchObject(refusal);
    await handler.handle(first, never);
    await handler.handle({ ...second, addresses }, never);
    expect(addressesOf(registry)).toEqual([["10.244.0.1", "2001:db8::1"]]);
  });

  it("may have no address, and changes nothing then; the first may not", async () => {
    const { registry, handler } = setUp();
    const addresses: string[] = [];
    const refusal = { code: 100, message: expect.stringMatching(/gave it no address/) };
    await expect(handler.handle({ ...first, addresses }, never)).rejects.toMatchObject(refusal);
    await handler.handle(first, never);
    await handler.handle({ ...second, addresses }, never);
    expect(addressesOf(registry)).toEqual([["10.244.0.1"]]);
    await handler.handle({ operation: "check", record: recordId(second), netns: NETNS, addresses }, never);
    await expect(handler.handle({ ...first, addresses }, never)).rejects.toMatchObject(refusal);
  });

  it("is refused where a slice has no room for its addresses", async () => {
    const { handler } = setUp();
    await handler.handle(first, never);
    const addresses = Array.from({ length: 8 }, (_, index) => `192.0.2.${index + 1}`);
    await expect(handler.handle({ ...second, addresses }, never)).rejects.toMatchObject({
      code: 100,
      message: expect.stringMatching(/apps\/web .*has 9 addresses, and a client can have 8 at most/),
    });
  });
});

it("annotations that look like ours are an event on their pod", async () => {
  const { recordEvent, handler } = setUp();
  const { pod } = request(1);
  const keys = ["egres.coil.cybozu.com/internet", "coil.cybozu.com/office"];
  await handler.handle({ operation: "mention", pod, keys }, never);
  expect(recordEvent.mock.calls).toEqual([
    [pod, expect.objectContaining({ type: "Warning", reason: "AnnotationNotUnderstood" })],
  ]);
  expect(recordEvent.mock.calls[0]?.[1].message).toMatch(
    /egres\.coil\.cybozu\.com\/internet, coil\.cybozu\.com\/office;/,
  );
});
