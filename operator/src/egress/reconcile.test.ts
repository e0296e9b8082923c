import { type EgressStatus, PAUSE_ROLLOUT_ANNOTATION } from "@egress-nat/crds";
import { done, KubeError, stalled } from "@egress-nat/kube";
import { FakeTransport } from "@egress-nat/kube/testing/fake-transport";
import { createLogger } from "@egress-nat/program";
import { describe, expect, test, vi } from "vitest";
import { createCaches } from "../caches.ts";
import { PublishedRanges } from "../cluster-ranges/published.ts";
import type { ChildKind } from "./children/index.ts";
import { LastingFailures } from "./lasting-failures.ts";
import { NO_CHILDREN, type ObservedChildren } from "./observed.ts";
import type { EgressSnapshot } from "./plan.ts";
import { reconcileEgress } from "./reconcile.ts";
import { EgressView, type Surroundings } from "./snapshot.ts";
import type { StoredEgress } from "./status.ts";
import { deploymentOfRelease, SETTINGS } from "./testing/children.ts";
import { anEgress } from "./testing/egress.ts";
import { UpgradeTurns } from "./upgrade-turns.ts";
import type { EgressWorld } from "./world.ts";

const KEY = "internet/nat";
const UNWATCHED = {
  ...{ transport: new FakeTransport([]), logger: createLogger({ name: "test", level: "silent" }) },
  ...{ namespace: "egress-nat", serviceAddresses: false },
};
const { logger } = UNWATCHED;
const signal = new AbortController().signal;

const unreachable = new KubeError("PATCH: no connection", { code: "Unreachable", retryable: true });
const invalid = new KubeError("PATCH: 422 Invalid: spec.template", {
  code: "Invalid",
  status: 422,
  retryable: false,
});
const failing = new KubeError("PATCH: 500 InternalError: failed calling webhook", {
  code: "InternalError",
  status: 500,
  retryable: true,
});
const passing = new KubeError("PATCH: 500 InternalError: etcdserver: leader changed", {
  code: "InternalError",
  status: 500,
  retryable: true,
});
const conflict = new KubeError("PATCH: 409 Conflict", { code: "Conflict", status: 409, retryable: true });
const notFound = new KubeError("PATCH: 404 NotFound", { code: "NotFound", status: 404, retryable: false });

type Children = EgressWorld["children"];

const SURROUNDINGS: Surroundings = {
  ...{ gateways: [], gatewayReasons: new Map(), gatewayReports: [], silentNodes: new Set(), clients: 0 },
  ...{ isOutside: () => false, allowedNamespaces: undefined },
};

/** A cluster with one Egress, and a record of what was written. */
class FakeWorld implements EgressWorld {
  readonly settings = SETTINGS;
  readonly applied: string[] = [];
  readonly statuses: EgressStatus[] = [];
  readonly lastingFailures = new LastingFailures();
  time = Date.parse("2026-01-02T03:04:05Z");
  failures: Readonly<Record<string, KubeError>>;
  readonly snapshot: EgressSnapshot;

  constructor(
    failures: Readonly<Record<string, KubeError>> = {},
    egress: StoredEgress = anEgress({}),
    children: ObservedChildren = NO_CHILDREN,
  ) {
    this.failures = failures;
    this.snapshot = { egress, children, gateways: [] };
  }

  readonly adjust = vi.fn<Children["adjust"]>(async (deployment) => deployment);

  readonly children: Children = {
    read: async () => undefined,
    create: (child) => this.#write(child),
    apply: (child) => this.#write(child),
    adjust: this.adjust,
    delete: async () => undefined,
  };

  readonly upgradeTurns = {
    take: vi.fn(() => true),
    failure: vi.fn((): KubeError | undefined => undefined),
    failed: vi.fn(),
    giveBack: vi.fn(),
  };

  surroundings() {
    return SURROUNDINGS;
  }

  async writeStatus(_egress: unknown, status: EgressStatus) {
    this.#fail("status");
    this.statuses.push(status);
  }

  announce() {}

  now() {
    return new Date(this.time).toISOString();
  }

  async #write(child: ChildKind) {
    this.#fail(child);
    this.applied.push(child);
    return undefined as never;
  }

  #fail(what: string) {
    if (this.failures[what] !== undefined) throw this.failures[what];
  }
}

const reconcile = (world: FakeWorld) => reconcileEgress(world.snapshot, world, { key: KEY, logger, signal });

const degraded = (world: FakeWorld) =>
  world.statuses.at(-1)?.conditions?.find(({ type }) => type === "Degraded")?.reason;

describe("reconciling an Egress", () => {
  test("makes side by side what gateways need, and the gateways when all of it is there", async () => {
    const made = Promise.withResolvers<never>();
    const begun: string[] = [];
    const create: Children["create"] = (child) => {
      begun.push(child);
      return made.promise;
    };
    const world = new FakeWorld();
    Object.assign(world.children, { create });
    const reconciled = reconcile(world);
    const needed = ["serviceAccount", "role", "roleBinding", "service"];
    expect(begun).toEqual(needed);
    made.resolve(undefined as never);
    await reconciled;
    expect(begun).toEqual([...needed, "deployment"]);
  });

  test("leaves one alone that is being deleted", async () => {
    const world = new FakeWorld();
    const caches = createCaches(UNWATCHED);
    const metadata = { deletionTimestamp: "2026-01-01T00:00:00Z" };
    caches.egresses.store.put(anEgress({}, { metadata }));
    const snapshot = new EgressView(caches, new PublishedRanges(caches.clusterRanges)).snapshot(KEY);
    expect(await reconcileEgress(snapshot, world, { key: KEY, logger, signal })).toEqual(done);
    expect(world.applied).toEqual([]);
  });

  test("that is not understood writes no child, and waits for a change", async () => {
    const world = new FakeWorld({}, { ...anEgress({}), invalid: "spec.destinations[0]: not a CIDR" });
    expect(await reconcile(world)).toEqual(stalled());
    expect(world.applied).toEqual([]);
    expect(degraded(world)).toBe("InvalidSpec");
  });

  test("blames no Egress for an API server that does not answer, and tries again", async () => {
    const world = new FakeWorld({ service: unreachable });
    await expect(reconcile(world)).rejects.toBe(unreachable);
    expect(world.statuses).toEqual([]);
  });

  test.each([invalid, failing])(
    "goes on after a child that meets $message, says so, and tries again",
    async (answer) => {
      const world = new FakeWorld({ service: answer });
      await expect(reconcile(world)).rejects.toBe(answer);
      expect(world.applied).toContain("deployment");
      expect(degraded(world)).toBe("ChildRefused");
    },
  );

  test("goes on after a child that meets a passing failure, and tries again without a word", async () => {
    const world = new FakeWorld({ service: passing });
    await expect(reconcile(world)).rejects.toBe(passing);
    expect(world.applied).toContain("deployment");
    expect(degraded(world)).toBe("AsExpected");
  });

  describe("with a failure of the API server that should pass", () => {
    const after = async (world: FakeWorld, ms: number, failures: Readonly<Record<string, KubeError>>) => {
      world.time += ms;
      world.failures = failures;
      await reconcile(world).catch(() => undefined);
      return degraded(world);
    };

    test("says so when it does not pass, and until it has", async () => {
      const world = new FakeWorld();
      expect(await after(world, 0, { service: passing })).toBe("AsExpected");
      expect(await after(world, 14_000, { service: passing })).toBe("AsExpected");
      expect(await after(world, 1_000, { service: passing })).toBe("ChildRefused");
      expect(world.statuses.at(-1)?.conditions?.find(({ type }) => type === "Degraded")?.message).toBe(
        passing.message,
      );
      expect(await after(world, 1_000, { service: passing })).toBe("ChildRefused");
      expect(await after(world, 60_000, {})).toBe("AsExpected");
      expect(await after(world, 60_000, { service: passing })).toBe("AsExpected");
    });

    test("that lasts goes on to say that it tries again, and speaks of no spec that is not applied", async () => {
      const world = new FakeWorld();
      await after(world, 0, { service: passing });
      await after(world, 15_000, { service: passing });
      const status = world.statuses.at(-1);
      expect(status?.observedGeneration).toBeUndefined();
      expect(status?.conditions?.map(({ type, status, reason }) => `${type}: ${status} ${reason}`)).toEqual([
        "Available: False NoGateway",
        "Progressing: True Retrying",
        "Degraded: True ChildRefused",
        "Ready: False ChildRefused",
        "Reconciling: True Retrying",
      ]);
    });

    test.each([conflict, unreachable])(
      "that lasts is not forgotten at $message of another child, or of the status",
      async (error) => {
        const world = new FakeWorld();
        await after(world, 0, { service: passing });
        await after(world, 15_000, { service: passing });
        await after(world, 1_000, { service: passing, role: error });
        await after(world, 1_000, { service: passing, status: error });
        expect(await after(world, 1_000, { service: passing })).toBe("ChildRefused");
      },
    );

    test.each([{ role: conflict }, { status: unreachable }])(
      "does not begin to count anew at what another write meets: %j",
      async (failure) => {
        const world = new FakeWorld();
        await after(world, 0, { service: passing });
        await after(world, 14_000, { service: passing, ...failure });
        expect(await after(world, 1_000, { service: passing })).toBe("ChildRefused");
      },
    );

    test("takes none for one that lasts because another child's does", async () => {
      const world = new FakeWorld();
      await after(world, 0, { service: passing });
      await after(world, 15_000, { service: passing });
      expect(await after(world, 1_000, { role: passing })).toBe("AsExpected");
    });

    test("does not take the first one after an outage for one that lasts", async () => {
      const world = new FakeWorld();
      await after(world, 0, { service: passing });
      await after(world, 30_000, { service: unreachable });
      expect(await after(world, 30_000, { service: passing })).toBe("AsExpected");
    });
  });

  test("looks again when the Egress has changed before its status is written", async () => {
    await expect(reconcile(new FakeWorld({ status: conflict }))).rejects.toBe(conflict);
  });

  test.each([
    [1, 0],
    [2, 1],
  ])("of generation %i looks for a budget without our label %i times", async (generation, times) => {
    const read = vi.fn(() => Promise.resolve(undefined));
    const world = new FakeWorld({}, anEgress({}, { metadata: { generation } }));
    Object.assign(world.children, { read });
    await reconcile(world);
    expect(read).toHaveBeenCalledTimes(times);
  });

  test("keeps the addresses of a Service whose change is refused: its clients go on", async () => {
    const egress = anEgress({});
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        name: egress.metadata.name,
        namespace: egress.metadata.namespace,
        uid: "a-service",
        resourceVersion: "1",
        ownerReferences: [
          {
            apiVersion: "coil.cybozu.com/v2",
            kind: "Egress",
            name: egress.metadata.name,
            uid: egress.metadata.uid,
            controller: true,
          },
        ],
      },
      spec: { clusterIPs: ["10.96.0.7", "fd00:96::7"] },
    };
    const world = new FakeWorld({ service: invalid }, egress, { ...NO_CHILDREN, service });
    await expect(reconcile(world)).rejects.toBe(invalid);
    expect(degraded(world)).toBe("ChildRefused");
    expect(world.statuses.at(-1)?.serviceIPs).toEqual(["10.96.0.7", "fd00:96::7"]);
  });

  describe("whose gateways are to be upgraded", () => {
    const PAUSED = { metadata: { annotations: { [PAUSE_ROLLOUT_ANNOTATION]: "true" } } };

    test.each([
      ["as many gateways as", { replicas: 5 }, { replicas: 5 }],
      [
        "as its next ones are to be replaced, what",
        { strategy: { rollingUpdate: { maxUnavailable: 1 } } },
        { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 1 } } },
      ],
      [
        "without a strategy's rest, what",
        { strategy: { type: "Recreate" } },
        { strategy: { type: "Recreate" } },
      ],
    ])("gives one that is paused %s its author wants", async (_, spec, expected) => {
      const world = new FakeWorld({}, anEgress(spec, PAUSED), deploymentOfRelease("gateway:0", anEgress({})));
      await reconcile(world);
      expect(world.adjust).toHaveBeenCalledOnce();
      expect(world.adjust.mock.lastCall?.[1]).toMatchObject(expected);
      expect(world.applied).not.toContain("deployment");
    });

    test("writes nothing to one that is paused and as its author wants it", async () => {
      const egress = anEgress({}, PAUSED);
      const world = new FakeWorld({}, egress, deploymentOfRelease("gateway:0", egress));
      expect(await reconcile(world)).toEqual(done);
      expect(world.adjust).not.toHaveBeenCalled();
    });

    // Others would be upgraded beside one whose upgrade was carried out.
    test.each([
      { answer: invalid, times: 1 },
      { answer: failing, times: 1 },
      { answer: conflict, times: 0 },
      { answer: passing, times: 0 },
      { answer: unreachable, times: 0 },
    ])("after $answer.message gives its turn back $times times", async ({ answer, times }) => {
      const egress = anEgress({});
      const world = new FakeWorld({ deployment: answer }, egress, deploymentOfRelease("gateway:0", egress));
      await expect(reconcile(world)).rejects.toBe(answer);
      expect(world.upgradeTurns.giveBack).toHaveBeenCalledTimes(times);
    });

    test.each([invalid, failing])(
      "after $message goes on to say so while it waits for its next turn",
      async (answer) => {
        const egress = anEgress({ replicas: 5 });
        const world = new FakeWorld(
          { deployment: answer },
          egress,
          deploymentOfRelease("gateway:0", anEgress({})),
        );
        await expect(reconcile(world)).rejects.toBe(answer);
        expect(world.upgradeTurns.failed).toHaveBeenCalledWith("internet/nat", answer);
        world.upgradeTurns.take.mockReturnValue(false);
        world.upgradeTurns.failure.mockReturnValue(answer);
        await expect(reconcile(world)).rejects.toBe(answer);
        expect(degraded(world)).toBe("ChildRefused");
        expect(world.adjust).toHaveBeenCalledOnce();
      },
    );

    test.each([invalid, passing])(
      "that nobody is served by says the same at each look: %s",
      async (answer) => {
        const egress = anEgress({});
        const children = deploymentOfRelease("gateway:0", egress, 0);
        const world = new FakeWorld({ deployment: answer }, egress, children);
        const { deployment = expect.fail() } = children;
        const turns = new UpgradeTurns({
          limit: 1,
          deployment: () => deployment,
          deployments: () => [["internet/nat", deployment]],
          wake: () => {},
        });
        Object.assign(world, { upgradeTurns: turns });
        // It comes last, after those that have gateways.
        await reconcile(world);
        for (let look = 0; look < 4; look += 1) {
          await expect(reconcile(world)).rejects.toBe(answer);
          world.time += 5_000;
        }
        await expect(reconcile(world)).rejects.toBe(answer);
        expect(degraded(world)).toBe("ChildRefused");
        const said = world.statuses
          .slice(1)
          .map(({ conditions }) => conditions?.find(({ type }) => type === "Progressing")?.reason);
        expect(new Set(said).size).toBe(1);
      },
    );

    test("takes a failure for one that lasts, also where it waits for its turn in between", async () => {
      const egress = anEgress({});
      const world = new FakeWorld({ deployment: passing }, egress, deploymentOfRelease("gateway:0", egress));
      await expect(reconcile(world)).rejects.toBe(passing);
      world.upgradeTurns.take.mockReturnValue(false);
      world.upgradeTurns.failure.mockReturnValue(passing);
      world.time += 10_000;
      await expect(reconcile(world)).rejects.toBe(passing);
      world.upgradeTurns.take.mockReturnValue(true);
      world.time += 5_000;
      await expect(reconcile(world)).rejects.toBe(passing);
      expect(degraded(world)).toBe("ChildRefused");
    });

    test("after a failure that lasts gives its turn back", async () => {
      const egress = anEgress({});
      const children = deploymentOfRelease("gateway:0", egress);
      const world = new FakeWorld({ deployment: passing }, egress, children);
      await expect(reconcile(world)).rejects.toBe(passing);
      world.time += 15_000;
      await expect(reconcile(world)).rejects.toBe(passing);
      expect(world.upgradeTurns.giveBack).toHaveBeenCalledOnce();
    });
  });

  test("is content when the Egress is gone before its status is written", async () => {
    expect(await reconcile(new FakeWorld({ status: notFound }))).toEqual(done);
  });
});
