import { setTimeout as pause } from "node:timers/promises";
import { EGRESS_RESOURCE, PAUSE_ROLLOUT_ANNOTATION } from "@egress-nat/crds";
import { createTransport, LEASE_RESOURCE, loadCredentials, type Transport } from "@egress-nat/kube";
import { Etcd } from "@egress-nat/kube/testing/etcd";
import { apiserver, etcd } from "@egress-nat/test/bed/api/apiserver";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import { CHILD_RESOURCES } from "./egress/children/index.ts";
import { Playground, silentLogger } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { type Asked, FaultProxy } from "./testing/fault-proxy.ts";
import { caughtUp, expectAsFresh } from "./testing/fresh-outcome.ts";
import { idleWrites } from "./testing/idle-writes.ts";
import { RunningOperator } from "./testing/running-operator.ts";
import { isWrite } from "./testing/writes.ts";

const { deployment, role, service } = CHILD_RESOURCES;

const eventually = { timeout: 30_000, interval: 20 };

let play: Playground;
let proxy: FaultProxy;
let transport: Transport;
let leaseTransport: Transport;
let operator: RunningOperator;
/** How long the operator waits for an answer; half a minute where it is undefined. */
let timeoutMs: number | undefined;

beforeEach(async () => {
  timeoutMs = undefined;
  play = await Playground.create(inject("kubeconfig"));
  proxy = await FaultProxy.to(await loadCredentials({ kubeconfig: inject("kubeconfig") }));
  const { credentials } = proxy;
  transport = createTransport({ credentials, logger: silentLogger });
  leaseTransport = createTransport({ credentials, logger: silentLogger });
  const { namespace } = play;
  const patient = confinedTo(namespace, transport);
  operator = RunningOperator.start(impatient(patient), namespace, "first", { leaseTransport });
  await expect.poll(() => operator.isReady, eventually).toBe(true);
});

afterEach(async () => {
  await operator.stop();
  transport.close();
  leaseTransport.close();
  await proxy[Symbol.asyncDispose]();
  play[Symbol.dispose]();
});

function impatient(patient: Transport): Transport {
  return { ...patient, request: (options) => patient.request({ timeoutMs, ...options }) };
}

const isPatch = ({ method, path }: Asked, pathEnd: string) => method === "PATCH" && path.endsWith(pathEnd);

const isOfLease = ({ path }: Asked) => path.includes("/leases");

const lease = async () => (await play.get(LEASE_RESOURCE, "egress-nat-operator"))?.spec;

const leader = async () => (await lease())?.holderIdentity;

const isObserved = async (name: string) => (await play.status(name))?.observedGeneration !== undefined;

describe("an apiserver that refuses", () => {
  test("as a conflict: the operator tries again, and others do not wait for it", async () => {
    proxy.faultOf = (asked) =>
      isPatch(asked, "/services/contended") && proxy.askedFor("PATCH", "/services/contended").length <= 3
        ? { status: 409, reason: "Conflict" }
        : undefined;
    await play.createEgress("contended");
    await play.createEgress("other");
    await expectAsFresh(play);
    expect(proxy.askedFor("PATCH", "/services/contended")).toHaveLength(4);
    expect(proxy.askedFor("PATCH", "/services/other")).toHaveLength(1);
    expect(await idleWrites(play, operator)).toEqual([]);
  });

  test("one child as invalid: the others are made, the Egress says so, and it is tried again ever more rarely", async () => {
    proxy.faultOf = (asked) =>
      isPatch(asked, "/roles/bad") ? { status: 422, reason: "Invalid" } : undefined;
    await play.createEgress("bad");
    await play.createEgress("good");
    await expect
      .poll(() => play.conditions("bad"), eventually)
      .toMatchObject({ Degraded: "True ChildRefused" });
    expect(await play.kinds("bad")).toEqual(["serviceAccount", "roleBinding", "service", "deployment"]);
    await expect
      .poll(() => play.conditions("good"), eventually)
      .toMatchObject({ Degraded: "False AsExpected" });
    const attempts = () => proxy.askedFor("PATCH", "/roles/bad").map(({ at }) => at);
    const longestPauseMs = () => Math.max(...attempts().map((at, index, all) => (all[index + 1] ?? at) - at));
    await expect.poll(longestPauseMs, eventually).toBeGreaterThan(500);
    expect(attempts().length).toBeLessThan(10);
    proxy.faultOf = () => undefined;
    await play.patchEgress("bad", { replicas: 2 });
    await expectAsFresh(play);
    expect(await idleWrites(play, operator)).toEqual([]);
  });

  test("because it is busy: it is left alone for as long as it asks", async () => {
    proxy.faultOf = (asked) =>
      isPatch(asked, "/services/hasty") && proxy.askedFor("PATCH", "/services/hasty").length === 1
        ? { status: 429, reason: "TooManyRequests", retryAfterSeconds: 5 }
        : undefined;
    await play.createEgress("hasty");
    await play.createEgress("other");
    await expect.poll(() => isObserved("other"), eventually).toBe(true);
    expect(proxy.askedFor("PATCH", "/services/hasty")).toHaveLength(1);
    await expectAsFresh(play);
    const [refused, repeated] = proxy.askedFor("PATCH", "/services/hasty");
    expect((repeated?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThan(5_000);
    expect(await idleWrites(play, operator)).toEqual([]);
  });
});

describe("an apiserver that fails", () => {
  test("at every other write: everything is made, with few writes too many", async () => {
    let writes = 0;
    proxy.faultOf = (asked) => {
      if (!isWrite(asked)) return undefined;
      writes += 1;
      return writes % 2 === 0 && writes <= 20 ? { status: 500, reason: "InternalError" } : undefined;
    };
    for (const name of ["one", "two", "three"])
      await play.createEgress(name, { podDisruptionBudget: { minAvailable: 1 } });
    await expectAsFresh(play);
    // Three times six children and a status, ten that failed, and statuses of what was seen too early.
    expect(operator.writes.length).toBeLessThan(3 * 7 + 10 + 3 * 3);
    expect(await idleWrites(play, operator)).toEqual([]);
  });

  test("once, by itself: the child is made at the next try, and nobody is told that it was refused", async () => {
    proxy.faultOf = (asked) =>
      isPatch(asked, "/services/unlucky") && proxy.askedFor("PATCH", "/services/unlucky").length === 1
        ? { status: 500, reason: "InternalError" }
        : undefined;
    await play.createEgress("unlucky");
    await expectAsFresh(play);
    expect(await idleWrites(play, operator)).toEqual([]);
    expect(await play.events("unlucky")).not.toContain("Warning ChildRefused");
    expect(await play.events("unlucky")).toContain("Normal Created");
  });

  test("once, at a change that its author makes while upgrades are paused: it is no upgrade at the next try", async () => {
    await play.createEgress("held");
    await play.patch(EGRESS_RESOURCE, "held", {
      metadata: { annotations: { [PAUSE_ROLLOUT_ANNOTATION]: "true" } },
    });
    await caughtUp(play);
    const before = proxy.askedFor("PATCH", "/deployments/held").length;
    proxy.faultOf = (asked) =>
      isPatch(asked, "/deployments/held") &&
      proxy.askedFor("PATCH", "/deployments/held").length === before + 1
        ? { status: 500, reason: "InternalError" }
        : undefined;
    await play.patchEgress("held", { template: { metadata: { labels: { team: "network" } } } });
    const team = async () => (await play.child("deployment", "held")).spec.template.metadata.labels.team;
    await expect.poll(team, eventually).toBe("network");
    await expectAsFresh(play);
  });

  test("for long, at one child: the Egress says so, until it is made", async () => {
    proxy.faultOf = (asked) =>
      isPatch(asked, "/services/hopeless") ? { status: 500, reason: "InternalError" } : undefined;
    await play.createEgress("hopeless");
    await expect
      .poll(() => play.conditions("hopeless"), eventually)
      .toMatchObject({ Degraded: "False AsExpected", Progressing: "True Retrying" });
    await expect
      .poll(() => play.conditions("hopeless"), { ...eventually, timeout: 60_000 })
      .toMatchObject({
        ...{ Degraded: "True ChildRefused", Ready: "False ChildRefused" },
        Reconciling: "True Retrying",
      });
    expect(await isObserved("hopeless")).toBe(false);
    proxy.faultOf = () => undefined;
    await play.patchEgress("hopeless", { replicas: 2 });
    await expectAsFresh(play);
    expect(await idleWrites(play, operator)).toEqual([]);
  });

  test("each time in other words: the status that tells of it is no reason to ask again at once", async () => {
    const attempts = () => proxy.askedFor("PATCH", "/services/wordy").length;
    proxy.faultOf = (asked) =>
      isPatch(asked, "/services/wordy") ? { status: 500, reason: `InternalError${attempts()}` } : undefined;
    await play.createEgress("wordy");
    await expect.poll(attempts, eventually).toBeGreaterThan(0);
    await pause(2_000);
    // 100 ms, and each time twice as long.
    expect(attempts()).toBeLessThan(10);
    proxy.faultOf = () => undefined;
    await expectAsFresh(play);
  });

  test("by saying nothing to a write: it is sent again, and others do not wait for it", async () => {
    timeoutMs = 1_000;
    const attempts = () => proxy.askedFor("PATCH", "/deployments/stuck").length;
    proxy.faultOf = (asked) => (isPatch(asked, "/deployments/stuck") ? "silence" : undefined);
    await play.createEgress("stuck");
    await play.createEgress("free");
    await expect.poll(() => isObserved("free"), eventually).toBe(true);
    await expect.poll(attempts, eventually).toBeGreaterThan(1);
    expect(await play.get(deployment, "stuck")).toBeUndefined();
    const unanswered = attempts();
    proxy.faultOf = () => undefined;
    timeoutMs = undefined;
    await expectAsFresh(play);
    expect(attempts()).toBe(unanswered + 1);
    expect(await idleWrites(play, operator)).toEqual([]);
  });

  test("by saying nothing while the operator is told to stop: it ends at once", async () => {
    proxy.faultOf = (asked) => (isPatch(asked, "/status") ? "silence" : undefined);
    await play.createEgress("unanswered");
    const attempts = () => proxy.askedFor("PATCH", "/egresses/unanswered/status");
    await expect.poll(() => attempts().length, eventually).toBe(1);
    const startedAt = performance.now();
    await operator.stop();
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  test("to say what it has done: nothing is there twice, and no write is sent more than twice", async () => {
    proxy.faultOf = (asked) =>
      isWrite(asked) && proxy.askedFor(asked.method, asked.path).length === 1 ? "answer lost" : undefined;
    await play.createEgress("nat", { podDisruptionBudget: { minAvailable: 1 } });
    await expectAsFresh(play);
    for (const write of new Set(operator.writes)) {
      expect(operator.writes.filter((each) => each === write).length, write).toBeLessThanOrEqual(2);
    }
    expect(await idleWrites(play, operator)).toEqual([]);
  });
});

describe("an apiserver that answers no write, of more than there are connections for", () => {
  const EGRESSES = 20;
  const CONNECTIONS = 16;

  let isLeaseSilent: boolean;
  let unanswered: number;

  beforeEach(async () => {
    isLeaseSilent = false;
    unanswered = 0;
    await expect.poll(leader, eventually).toBe("first");
    proxy.faultOf = (asked) => {
      if (isWrite(asked)) unanswered += 1;
      return isWrite(asked) || (isLeaseSilent && isOfLease(asked)) ? "silence" : undefined;
    };
    await Promise.all(Array.from({ length: EGRESSES }, (_, index) => play.createEgress(`nat-${index}`)));
    await expect.poll(() => unanswered, eventually).toBeGreaterThanOrEqual(CONNECTIONS);
    await expect.poll(() => operator.writes.length, eventually).toBeGreaterThan(CONNECTIONS);
  });

  test("the leader renews its lease all the same", async () => {
    for (let renewal = 1; renewal <= 2; renewal += 1) {
      const before = (await lease()).renewTime;
      await expect.poll(async () => (await lease()).renewTime, eventually).not.toBe(before);
    }
    expect(await leader()).toBe("first");
  });

  test("and no renewal either: the leader has ended before another one leads, and sends nothing more", async () => {
    const { namespace } = play;
    await using second = RunningOperator.start(confinedTo(namespace, play.transport), namespace, "second");
    isLeaseSilent = true;
    await expect.poll(leader, { ...eventually, timeout: 60_000 }).toBe("second");
    expect(operator.isLeading).toBe(false);
    const before = proxy.asked.filter(isWrite).length;
    // What it wrote now would be carried out.
    proxy.faultOf = (asked) => (isOfLease(asked) ? "silence" : undefined);
    await expectAsFresh(play);
    expect(proxy.asked.filter(isWrite)).toHaveLength(before);
    expect(await idleWrites(play, operator, second)).toEqual([]);
  });
});

describe("watches", () => {
  test("that break again and again, also before they are answered, lose nothing, and nothing is listed again", async () => {
    const lists = () => proxy.asked.filter(isList);
    const before = lists().length;
    await play.createEgress("nat");
    proxy.faultOf = ({ isWatch }) => (isWatch ? "silence" : undefined);
    const { length } = proxy.asked;
    proxy.dropWatches();
    await expect.poll(() => proxy.asked.slice(length).some(({ isWatch }) => isWatch), eventually).toBe(true);
    proxy.faultOf = () => undefined;
    for (let round = 1; round <= 5; round += 1) {
      proxy.dropWatches();
      await play.patchEgress("nat", { replicas: round });
      await play.delete(role, "nat").catch(() => undefined);
      await play.patch(service, "nat", { spec: { selector: { app: "other" } } }).catch(() => undefined);
    }
    await expectAsFresh(play);
    expect(lists().slice(before)).toEqual([]);
    expect(await idleWrites(play, operator)).toEqual([]);
  });

  test("that are behind: what was taken from the operator meanwhile, it does not take back", async () => {
    await play.createEgress("nat");
    await caughtUp(play);
    proxy.faultOf = ({ isWatch, path }) => (isWatch && path.endsWith("/deployments") ? "silence" : undefined);
    proxy.dropWatches();
    await play.patch(deployment, "nat", { metadata: { ownerReferences: null } });
    const before = proxy.askedFor("PATCH", "/deployments/nat").length;
    await play.patchEgress("nat", { replicas: 2 });
    await expect
      .poll(() => proxy.askedFor("PATCH", "/deployments/nat").length, eventually)
      .toBeGreaterThan(before + 1);
    expect((await play.get(deployment, "nat"))?.metadata.ownerReferences).toBeUndefined();
    proxy.faultOf = () => undefined;
    proxy.dropWatches();
    await expect
      .poll(() => play.conditions("nat"), eventually)
      .toMatchObject({ Degraded: "True NameConflict" });
    await expectAsFresh(play);
    expect(await idleWrites(play, operator)).toEqual([]);
  });

  test("that are cut off until their history is gone: what happened meanwhile is made good", async () => {
    for (const name of ["kept", "replaced", "removed", "damaged"]) await play.createEgress(name);
    await caughtUp(play);
    proxy.faultOf = ({ isWatch }) => (isWatch ? "silence" : undefined);
    proxy.dropWatches();
    for (const name of ["replaced", "removed"]) await play.deleteEgress(name);
    await play.createEgress("replaced", { replicas: 3 });
    await play.createEgress("added");
    await play.delete(service, "damaged");
    await new Etcd(inject("etcdUrl")).compact();
    // The apiserver remembers recent changes by itself; a new one does not.
    try {
      await apiserver.kill();
    } finally {
      await apiserver.start();
    }
    const restoredAt = performance.now();
    proxy.faultOf = () => undefined;
    proxy.dropWatches();
    await expectAsFresh(play);
    expect(await play.kinds("removed")).toEqual([]);
    const relists = proxy.asked.filter((asked) => asked.at > restoredAt && isList(asked));
    expect(relists).not.toEqual([]);
    expect(await idleWrites(play, operator)).toEqual([]);
  });
});

test("etcd that is killed in the middle of the work and comes back: the work goes on", async () => {
  await play.createEgress("before");
  await caughtUp(play);
  const names = ["one", "two", "three", "four"];
  await Promise.all(names.map((name) => play.createEgress(name)));
  await expect.poll(() => operator.writes.length, { ...eventually, interval: 1 }).toBeGreaterThan(8);
  try {
    await etcd.kill();
  } finally {
    await etcd.start();
  }
  await expect
    .poll(
      () =>
        play.patchEgress("before", { replicas: 2 }).then(
          () => true,
          () => false,
        ),
      eventually,
    )
    .toBe(true);
  await expectAsFresh(play);
  expect(await idleWrites(play, operator)).toEqual([]);
});

/** Not so a look at one object, which only asks for the present moment. */
function isList({ method, path, isWatch, limit }: Asked): boolean {
  return (
    method === "GET" &&
    !isWatch &&
    limit !== 1 &&
    [EGRESS_RESOURCE, ...Object.values(CHILD_RESOURCES)].some(({ plural }) => path.endsWith(`/${plural}`))
  );
}
