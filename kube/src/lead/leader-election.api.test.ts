import { afterAll, afterEach, beforeAll, beforeEach, expect, inject, test, vi } from "vitest";
import { createNamespace } from "../testing/namespace.ts";
import { silentLogger } from "../testing/silent-logger.ts";
import { TcpProxy } from "../testing/tcp-proxy.ts";
import type { Credentials } from "../transport/credentials.ts";
import { createTransport } from "../transport/https-transport.ts";
import { loadCredentials } from "../transport/load-credentials.ts";
import type { Transport } from "../transport/transport.ts";
import { LeaderElector } from "./leader-election.ts";

let credentials: Credentials;
let direct: Transport;
let namespace: string;
let leases = 0;
let lease: string;
let candidates: Candidate[];

beforeAll(async () => {
  credentials = await loadCredentials({ kubeconfig: inject("kubeconfig") });
  direct = createTransport({ credentials, logger: silentLogger });
  namespace = await createNamespace(direct, "leader-election");
});

afterAll(() => direct.close());

beforeEach(() => {
  leases += 1;
  lease = `lease-${leases}`;
  candidates = [];
});

afterEach(async () => {
  await Promise.all(candidates.map((candidate) => candidate.stop()));
});

/** A candidate with a lease of five seconds, and what it went through. */
class Candidate {
  readonly elector: LeaderElector;
  readonly story: string[] = [];
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  constructor(identity: string, transport: Transport = direct) {
    this.elector = new LeaderElector({
      transport,
      namespace,
      name: lease,
      identity,
      logger: silentLogger,
      leaseDurationMs: 5_000,
      renewDeadlineMs: 4_000,
      retryPeriodMs: 200,
    });
    const onLead = async (signal: AbortSignal) => {
      this.story.push("leads");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      this.story.push("has stopped");
    };
    this.#running = this.elector.run({ onLead, onLost: () => this.story.push("lost") }, this.#stop.signal);
    candidates.push(this);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }
}

interface LeaseObject {
  readonly spec: {
    readonly holderIdentity: string;
    readonly leaseTransitions: number;
    readonly acquireTime: string;
    readonly renewTime: string;
  };
}

const leasePath = () => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${lease}`;

const readLease = (): Promise<LeaseObject> => direct.request({ method: "GET", path: leasePath() });

test("one of two candidates leads, and keeps the lead beyond its lease's duration", async () => {
  const one = new Candidate("one");
  const two = new Candidate("two");
  await vi.waitUntil(() => one.elector.isLeader || two.elector.isLeader);
  const leader = one.elector.isLeader ? one : two;
  const other = leader === one ? two : one;
  await vi.waitUntil(async () => {
    const { acquireTime, renewTime } = (await readLease()).spec;
    return Date.parse(renewTime) - Date.parse(acquireTime) > 5_000;
  });
  expect(leader.story).toEqual(["leads"]);
  expect(other.story).toEqual([]);
  expect(other.elector.leader).toBe(leader === one ? "one" : "two");
});

test("a leader that is told to stop hands over at once, when its work has ended", async () => {
  const one = new Candidate("one");
  await vi.waitUntil(() => one.elector.isLeader);
  const two = new Candidate("two");
  await vi.waitUntil(() => two.elector.leader === "one");
  const startedAt = performance.now();
  await one.stop();
  await vi.waitUntil(() => two.elector.isLeader);
  expect(performance.now() - startedAt).toBeLessThan(4_000);
  expect(one.story).toEqual(["leads", "has stopped"]);
  const { spec } = await readLease();
  expect(spec).toMatchObject({ holderIdentity: "two", leaseTransitions: 1 });
  expect(spec.renewTime).toMatch(/\.\d{6}Z$/);
});

test("a leader whose lease was written without its knowledge releases it all the same", async () => {
  const one = new Candidate("one");
  await vi.waitUntil(() => one.elector.isLeader);
  // As its own renewal is, where the answer was lost.
  await direct.request({
    method: "PATCH",
    path: leasePath(),
    contentType: "application/merge-patch+json",
    body: { metadata: { labels: { written: "yes" } } },
  });
  await one.stop();
  expect((await readLease()).spec.holderIdentity).toBe("");
});

test("a lease that somebody deletes is made again by whoever leads, and nobody else takes it meanwhile", async () => {
  const one = new Candidate("one");
  await vi.waitUntil(() => one.elector.isLeader);
  const two = new Candidate("two");
  await vi.waitUntil(() => two.elector.leader === "one");
  for (let round = 0; round < 5; round += 1) {
    await direct.request({ method: "DELETE", path: leasePath() });
    await vi.waitUntil(() => readLease().catch(() => undefined), { timeout: 10_000 });
  }
  expect((await readLease()).spec.holderIdentity).toBe("one");
  expect([one.story, two.story]).toEqual([["leads"], []]);
});

test("a leader that cannot renew stops before another one leads, and leads again later", async () => {
  await using proxy = await TcpProxy.to(credentials.server);
  const transport = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
  const one = new Candidate("one", transport);
  await vi.waitUntil(() => one.elector.isLeader);
  const two = new Candidate("two");
  proxy.cut();
  await vi.waitUntil(() => two.elector.isLeader);
  expect(one.story).toEqual(["leads", "lost", "has stopped"]);
  proxy.restore();
  await two.stop();
  await vi.waitUntil(() => one.elector.isLeader);
  await one.stop();
  transport.close();
});

test("a leader whose renewals are never answered, nor refused, stops before another one leads", async () => {
  let isSilent = false;
  const silence = Promise.withResolvers<never>();
  const silent: Transport = {
    request: (options) => (isSilent ? silence.promise : direct.request(options)),
    stream: (options) => direct.stream(options),
    close: () => undefined,
  };
  const one = new Candidate("one", silent);
  await vi.waitUntil(() => one.elector.isLeader);
  const two = new Candidate("two");
  isSilent = true;
  try {
    await vi.waitUntil(() => two.elector.isLeader);
    expect(one.story).toEqual(["leads", "lost", "has stopped"]);
    expect(one.elector.isLeader).toBe(false);
  } finally {
    silence.reject(new Error("the connection broke"));
  }
});

test("a leader survives a connection that carries nothing any more", async () => {
  await using proxy = await TcpProxy.to(credentials.server);
  const transport = createTransport({ credentials: proxy.reach(credentials), logger: silentLogger });
  const one = new Candidate("one", transport);
  await vi.waitUntil(() => one.elector.isLeader);
  proxy.freeze();
  const { renewTime } = (await readLease()).spec;
  await vi.waitUntil(async () => (await readLease()).spec.renewTime > renewTime);
  expect(one.story).toEqual(["leads"]);
  await one.stop();
  transport.close();
});

test("an error of the work ends the candidacy and frees the lease", async () => {
  const elector = new LeaderElector({
    transport: direct,
    namespace,
    name: lease,
    identity: "one",
    logger: silentLogger,
  });
  const onLead = () => Promise.reject(new Error("out of order"));
  await expect(elector.run({ onLead }, new AbortController().signal)).rejects.toThrow("out of order");
  expect((await readLease()).spec.holderIdentity).toBe("");
});
