import { beforeEach, expect, test } from "vitest";
import { KubeError } from "../error.ts";
import { FakeClock } from "../testing/fake-clock.ts";
import {
  done,
  type Outcome,
  requeueAfter,
  stalled,
  type WorkFailure,
  WorkQueue,
  type WorkReport,
} from "./work-queue.ts";

let clock: FakeClock;
let reports: WorkReport[];
let failures: WorkFailure[];
let log: string[];
let jobs: { readonly key: string; finish: (outcome?: Outcome) => void; fail: (error?: unknown) => void }[];
let stop: AbortController;

beforeEach(() => {
  clock = new FakeClock();
  reports = [];
  failures = [];
  log = [];
  jobs = [];
  stop = new AbortController();
});

function createQueue(concurrency = 1): WorkQueue {
  const backoff = { baseMs: 100, maxMs: 1_000 };
  return new WorkQueue({
    ...{ concurrency, backoff, clock },
    onReport: (report) => reports.push(report),
    onFailure: (failure) => failures.push(failure),
  });
}

/** A worker that notes what it begins, and ends it when the test says so. */
const worker = (key: string): Promise<Outcome> => {
  const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
  log.push(key);
  const fail = (error: unknown = new Error("failed")) => reject(error);
  jobs.push({ key, finish: (outcome = done) => resolve(outcome), fail });
  return promise;
};

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** Between two keys the queue lets others have a turn. */
async function settle(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

async function finishNext(outcome?: Outcome): Promise<void> {
  jobs.shift()?.finish(outcome);
  await settle();
}
async function failNext(error?: unknown): Promise<void> {
  jobs.shift()?.fail(error);
  await settle();
}

test("keys are worked on in the order in which they came, each once", async () => {
  const queue = createQueue();
  for (const key of ["a", "b", "a", "c", "b"]) queue.add(key);
  void queue.run(worker, stop.signal);
  for (let i = 0; i < 5; i += 1) await finishNext();
  expect(log).toEqual(["a", "b", "c"]);
});

test("no more than the given number is worked on at a time", async () => {
  const queue = createQueue(2);
  void queue.run(worker, stop.signal);
  for (const key of ["a", "b", "c"]) queue.add(key);
  expect(log).toEqual(["a", "b"]);
  expect([queue.active, queue.depth]).toEqual([2, 1]);
  await finishNext();
  expect(log).toEqual(["a", "b", "c"]);
});

test("a key that comes while it is worked on has one more turn afterwards, never two at a time", async () => {
  const queue = createQueue(5);
  void queue.run(worker, stop.signal);
  queue.add("a");
  queue.add("a");
  queue.add("a");
  expect(log).toEqual(["a"]);
  await finishNext();
  expect(log).toEqual(["a", "a"]);
  await finishNext();
  expect(log).toEqual(["a", "a"]);
});

test("a key that fails comes again later and later, and holds up no other", async () => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.add("bad");
  await failNext();
  queue.add("good");
  expect(log).toEqual(["bad", "good"]);
  await finishNext();
  clock.advance(100);
  expect(log).toEqual(["bad", "good", "bad"]);
  await failNext();
  await failNext();
  const delays = failures.map(({ retryAfterMs }) => retryAfterMs);
  expect(delays[0]).toBeLessThanOrEqual(100);
  expect(delays[1]).toBeGreaterThanOrEqual(100);
});

test("after a success the delays start over", async () => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.add("a");
  await failNext();
  clock.advance(1_000);
  await failNext();
  clock.advance(1_000);
  await finishNext();
  queue.add("a");
  await failNext();
  expect(failures.at(-1)).toMatchObject({ failures: 1 });
});

test("an apiserver that asked to wait is waited for", async () => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.add("a");
  await failNext(new KubeError("busy", { code: "TooManyRequests", retryable: true, retryAfterMs: 5_000 }));
  clock.advance(4_999);
  expect(log).toEqual(["a"]);
  clock.advance(200);
  expect(log).toEqual(["a", "a"]);
});

test("a worker may ask to look again after a while", async () => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.add("a");
  await finishNext(requeueAfter(60_000));
  clock.advance(59_999);
  expect(log).toEqual(["a"]);
  clock.advance(1);
  expect(log).toEqual(["a", "a"]);
});

test.each([
  ["waits for a change alone", undefined, "done"],
  ["looks again in time, where no watch tells of the remedy", 30_000, "requeue"],
] as const)("what no retry mends %s", async (_, afterMs, outcome) => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.add("a");
  await failNext();
  clock.advance(1_000);
  await finishNext(stalled(afterMs));
  expect(reports.at(-1)).toMatchObject({ key: "a", outcome });
  clock.advance(29_999);
  expect(log).toEqual(["a", "a"]);
  clock.advance(1);
  expect(log).toEqual(afterMs === undefined ? ["a", "a"] : ["a", "a", "a"]);
  queue.add("a");
  await failNext();
  // It was no failure that makes the next pause longer.
  expect(failures.at(-1)).toMatchObject({ failures: 1 });
});

test("of two appointments for a key the earlier one counts", () => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.addAfter("a", 1_000);
  queue.addAfter("a", 500);
  queue.addAfter("a", 2_000);
  clock.advance(500);
  clock.advance(10_000);
  expect([log, queue.depth]).toEqual([["a"], 0]);
});

test("a reminder is no reason to try sooner what has failed, whenever it comes; anything else is", async () => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.add("a");
  queue.remind("a", 1);
  clock.advance(1);
  await failNext(new KubeError("busy", { code: "TooManyRequests", retryable: true, retryAfterMs: 60_000 }));
  queue.remind("a", 1);
  clock.advance(1_000);
  expect(log).toEqual(["a"]);
  queue.addAfter("a", 1);
  clock.advance(1);
  await settle();
  expect(log).toEqual(["a", "a"]);
});

test("a reminder of what has not failed is kept", async () => {
  const queue = createQueue();
  void queue.run(worker, stop.signal);
  queue.add("a");
  queue.remind("a", 1);
  await finishNext();
  clock.advance(1);
  await settle();
  expect(log).toEqual(["a", "a"]);
});

test("what waits beside a reminder is not forgotten with it", async () => {
  for (const order of [["remind", "addAfter"] as const, ["addAfter", "remind"] as const]) {
    const queue = createQueue();
    log = [];
    void queue.run(worker, stop.signal);
    queue.add("a");
    for (const ask of order) queue[ask]("a", 1);
    await failNext(new KubeError("busy", { code: "TooManyRequests", retryable: true, retryAfterMs: 60_000 }));
    clock.advance(1);
    await settle();
    expect(log).toEqual(["a", "a"]);
    jobs = [];
  }
});

test("many keys that need no waiting do not keep everything else waiting", async () => {
  const queue = createQueue();
  for (let key = 0; key < 100; key += 1) queue.add(String(key));
  void queue.run(async () => done, stop.signal);
  await nextTurn();
  expect(queue.depth).toBeGreaterThan(0);
  await expect.poll(() => reports.length, { timeout: 30_000 }).toBe(100);
});

test("a queue that is stopped ends when what it began has ended, and begins nothing more", async () => {
  const queue = createQueue();
  const running = queue.run(worker, stop.signal);
  queue.add("a");
  queue.add("b");
  queue.addAfter("c", 10);
  stop.abort();
  let hasEnded = false;
  void running.then(() => {
    hasEnded = true;
  });
  await settle();
  expect(hasEnded).toBe(false);
  await finishNext();
  await running;
  clock.advance(10);
  expect(log).toEqual(["a"]);
});

test("a worker that gives up because it was told to stop has not failed", async () => {
  const queue = createQueue();
  const running = queue.run(worker, stop.signal);
  queue.add("a");
  stop.abort();
  await failNext();
  await running;
  expect(reports).toEqual([]);
});

test("a queue that is stopped keeps nothing for another run: neither keys that wait nor failures", async () => {
  const queue = createQueue();
  const running = queue.run(worker, stop.signal);
  queue.add("bad");
  await failNext();
  for (const key of ["active", "waiting", "active"]) queue.add(key);
  stop.abort();
  await finishNext();
  await running;
  expect(queue.depth).toBe(0);
  stop = new AbortController();
  void queue.run(worker, stop.signal);
  clock.advance(10_000);
  expect(log).toEqual(["bad", "active"]);
  queue.add("bad");
  expect(log).toEqual(["bad", "active", "bad"]);
  await failNext();
  expect(failures.map((failure) => failure.failures)).toEqual([1, 1]);
});
