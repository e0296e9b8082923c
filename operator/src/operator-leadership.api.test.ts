import { hasCode, KubeError, LEASE_RESOURCE, NAMESPACE_RESOURCE, type Transport } from "@egress-nat/kube";
import { createNamespace } from "@egress-nat/kube/testing/namespace";
import { afterEach, beforeEach, expect, inject, test } from "vitest";
import { Playground } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { caughtUp, expectAsFresh } from "./testing/fresh-outcome.ts";
import { idleWrites } from "./testing/idle-writes.ts";
import { RunningOperator } from "./testing/running-operator.ts";

const eventually = { timeout: 20_000, interval: 20 };

const EGRESSES = 12;

/** Five children and a status. */
const WRITES_EACH = 6;

/** How many Egresses an operator works on at a time. */
const AT_A_TIME = 8;

let play: Playground;
let first: RunningOperator;
let second: RunningOperator;
/** Whether the first one's requests for the lease get no further. */
let isLeaseOutOfReach: boolean;
/** What the first one's next status waits for before it is sent; nothing follows it. Undefined: statuses pass. */
let late: PromiseWithResolvers<void> | undefined;
/** What the API server has answered to statuses of the first one that were sent late. */
let answersToLate: string[];

/** Two candidates, of whom `first` leads. */
beforeEach(async () => {
  isLeaseOutOfReach = false;
  late = undefined;
  answersToLate = [];
  play = await Playground.create(inject("kubeconfig"));
  const { namespace } = play;
  const transport = confinedTo(namespace, play.transport);
  first = RunningOperator.start(partlyBroken(transport), namespace, "first");
  await expect.poll(leader, eventually).toBe("first");
  second = RunningOperator.start(transport, namespace, "second");
  await expect.poll(() => first.isReady && second.isReady, eventually).toBe(true);
});

afterEach(async () => {
  late?.resolve();
  await Promise.all([first.stop(), second.stop()]);
  play[Symbol.dispose]();
});

function partlyBroken(transport: Transport): Transport {
  let heldBack = 0;
  return {
    ...transport,
    request: async (options) => {
      if (isLeaseOutOfReach && options.path.includes("/leases")) throw new Error("out of reach");
      if (late === undefined || !options.path.endsWith("/status")) return transport.request(options);
      heldBack += 1;
      if (heldBack > 1) throw new Error("out of reach");
      await late.promise;
      // It has left the process already: whatever that learns meanwhile does not keep it back.
      const { beforeSend: _, signal: __, ...onItsWay } = options;
      const answer = transport.request<never>(onItsWay);
      const said = answer.then(
        () => "written",
        (error: unknown) => (hasCode(error, "Conflict") ? "Conflict" : String(error)),
      );
      answersToLate.push(await said);
      return answer;
    },
  };
}

const leader = async () => (await play.get(LEASE_RESOURCE, "egress-nat-operator"))?.spec.holderIdentity;

async function makeMany(): Promise<void> {
  await Promise.all(Array.from({ length: EGRESSES }, (_, index) => play.createEgress(`nat-${index}`)));
}

test("a leader that is told to stop in the middle of its work leaves the rest to the other one", async () => {
  const creation = makeMany();
  await expect.poll(() => first.writes.length, { ...eventually, interval: 1 }).toBeGreaterThan(WRITES_EACH);
  await first.stop();
  await creation;
  await caughtUp(play);
  await expectAsFresh(play);
  expect(second.writes).not.toEqual([]);
  // What was under way when it was told to stop may be done twice.
  expect(first.writes.length + second.writes.length).toBeLessThan((EGRESSES + AT_A_TIME) * WRITES_EACH);
  expect(await idleWrites(play, second)).toEqual([]);
});

test("a former leader's late word does not let a revoked namespace in again", async () => {
  late = Promise.withResolvers();
  const namespace = await createNamespace(play.transport, "revoked");
  const label = (team: string | null) =>
    play.patch(NAMESPACE_RESOURCE, namespace, { metadata: { labels: { team } } });
  await label(namespace);
  await play.createEgress("nat", { allowedNamespaces: { matchLabels: { team: namespace } } });
  const statusWrites = () => first.writes.filter((write) => write.endsWith("/status"));
  await expect.poll(statusWrites, eventually).toHaveLength(1);
  // As if the first one's process had been frozen from here on.
  isLeaseOutOfReach = true;
  await play.patch(LEASE_RESOURCE, "egress-nat-operator", {
    spec: { holderIdentity: "second", renewTime: null },
  });
  const allowed = async () => (await play.status("nat"))?.allowedNamespaces;
  await expect.poll(allowed, eventually).toEqual([namespace]);
  await label(null);
  await expect.poll(allowed, eventually).toEqual([]);
  await second.stop();

  late.resolve();
  await expect.poll(() => answersToLate, eventually).toEqual(["Conflict"]);
  await first.stop();
  expect(await allowed()).toEqual([]);
});

test("two that both take themselves for the leader do not fight", async () => {
  // As if the first one's process had been frozen for longer than its lease lasts.
  isLeaseOutOfReach = true;
  await play.patch(LEASE_RESOURCE, "egress-nat-operator", {
    spec: { holderIdentity: "second", renewTime: null },
  });
  const renewed = async () => (await play.get(LEASE_RESOURCE, "egress-nat-operator")).spec.renewTime;
  await expect.poll(renewed, eventually).toEqual(expect.any(String));
  await makeMany();
  await caughtUp(play);
  await expectAsFresh(play);
  expect(first.writes).not.toEqual([]);
  expect(second.writes).not.toEqual([]);
  const writes = [...first.writes, ...second.writes];
  expect(writes.filter((write) => write.startsWith("DELETE"))).toEqual([]);
  expect(writes.length).toBeLessThan(2 * (EGRESSES + AT_A_TIME) * WRITES_EACH);
  expect(await idleWrites(play, first, second)).toEqual([]);
});

test("one that may not read what it needs does not ask for the lease", async () => {
  let asked = 0;
  const transport: Transport = {
    ...confinedTo(play.namespace, play.transport),
    stream: async () => {
      throw new KubeError("forbidden", { code: "Forbidden", retryable: false });
    },
    request: (options) => {
      if (options.path.includes("/leases")) asked += 1;
      return play.transport.request(options);
    },
  };
  await using blind = RunningOperator.start(transport, play.namespace, "blind");
  await first.stop();
  await expect.poll(leader, eventually).toBe("second");
  expect([blind.isReady, asked]).toEqual([false, 0]);
});
