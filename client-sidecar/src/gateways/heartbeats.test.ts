import type { Clock } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Heartbeats, type WatchedGateway } from "./heartbeats.ts";

const NAT = { namespace: "internet", name: "nat" };
const gateway = (name: string): WatchedGateway => ({ egress: NAT, name, addresses: [`of-${name}`] });
const [one, other] = [gateway("one"), gateway("other")];
const logger = createLogger({ name: "test", level: "silent" });

/** Whoever waits goes on at once, whatever time it is. */
const soon = (now: () => number): Clock => ({
  now,
  after: (_, callback) => {
    setImmediate(callback);
    return () => undefined;
  },
});

let gateways: WatchedGateway[];
/** Names of gateways whose programs, and whose kernels, do not answer. */
let down: Record<"programs" | "kernels", Set<string>>;
/** Names of gateways that have lost their way out. */
let stranded: Set<string>;
let changes: string[];
/** Names of Egresses. */
let told: string[];
let beatsWhenTold: number[];
let probes: string[];
let beats: number;
let heartbeats: Heartbeats;
let ended: AbortController;
let running: Promise<void>;

beforeEach(async () => {
  gateways = [one, other];
  down = { programs: new Set(), kernels: new Set() };
  stranded = new Set();
  [changes, told, beatsWhenTold, probes, beats] = [[], [], [], [], 0];
  ended = new AbortController();
  heartbeats = new Heartbeats({
    gateways: () => gateways,
    beat: async ({ name }) => {
      beats += 1;
      return down.programs.has(name) ? undefined : stranded.has(name) ? "stranded" : "alive";
    },
    probe: async ({ name }) => {
      probes.push(name);
      return !down.kernels.has(name);
    },
    onChange: ({ name }) => {
      told.push(name);
      beatsWhenTold.push(beats);
      changes.push(gateways.map((each) => heartbeats.pulse(each)).join());
    },
    logger,
    // As fast as rounds go.
    clock: soon(() => 0),
  });
  running = heartbeats.run(ended.signal);
  await expect.poll(() => gateways.map((each) => heartbeats.pulse(each))).toEqual(["alive", "alive"]);
  [changes, told] = [[], []];
});

afterEach(() => {
  ended.abort();
  return running;
});

test("gateways that answer stay alive, and no tunnel is asked", async () => {
  await expect.poll(() => beats).toBeGreaterThan(10);
  expect([heartbeats.pulse(one), heartbeats.pulse(other), ...probes]).toEqual(["alive", "alive"]);
});

describe("a gateway whose program has ended", () => {
  test("is suspect for as long as its kernel answers, and alive once its program is back", async () => {
    down.programs.add("one");
    await expect.poll(() => changes).toEqual(["suspect,alive"]);
    await expect.poll(() => probes.length).toBeGreaterThan(3);
    down.programs.clear();
    await expect.poll(() => changes).toEqual(["suspect,alive", "alive,alive"]);
    expect(new Set(probes)).toEqual(new Set(["one"]));
  });

  test("is dead once its kernel does not answer either, and alive once its program is back", async () => {
    down = { programs: new Set(["one"]), kernels: new Set(["one"]) };
    await expect.poll(() => heartbeats.pulse(one)).toBe("dead");
    down.programs.clear();
    await expect.poll(() => heartbeats.pulse(one)).toBe("alive");
  });
});

test("a gateway is the same one while the API names it in one family only", async () => {
  const dual = { ...one, addresses: ["of-one", "v6-of-one"] };
  const inOneFamily = { ...one, addresses: ["v6-of-one"] };
  gateways = [dual, other];
  await expect.poll(() => heartbeats.pulse(dual)).toBe("alive");
  down = { programs: new Set(["one"]), kernels: new Set(["one"]) };
  await expect.poll(() => heartbeats.pulse(dual)).toBe("dead");
  for (const seen of [inOneFamily, dual]) {
    gateways = [seen, other];
    changes = [];
    const before = beats;
    await expect.poll(() => beats).toBeGreaterThan(before + 20);
    expect([heartbeats.pulse(seen), ...changes]).toEqual(["dead"]);
  }
});

describe("an address that two Egresses name, because another pod has it by now", () => {
  const OTHER = { namespace: "internet", name: "other" };
  const now = { ...one, egress: OTHER, name: "now", addresses: ["shared", "its-own"] };
  const before = { ...one, name: "before", addresses: ["shared"] };

  test("clients of both are told", async () => {
    gateways = [now, before];
    await expect.poll(() => told.length).toBe(2);
    told = [];
    down = { programs: new Set(["now", "before"]), kernels: new Set(["now", "before"]) };
    await expect.poll(() => heartbeats.pulse(now)).toBe("dead");
    await expect.poll(() => new Set(told)).toEqual(new Set(["nat", "other"]));
    expect(told.filter((name) => name === "nat")).toHaveLength(told.length / 2);
  });

  test("is suspect after as many rounds as any other", async () => {
    gateways = [now, before];
    await expect.poll(() => told.length).toBe(2);
    down.programs.add("now").add("before");
    [beats, beatsWhenTold] = [0, []];
    await expect.poll(() => heartbeats.pulse(now)).toBe("suspect");
    expect(beatsWhenTold[0]).toBeGreaterThanOrEqual(3 * gateways.length);
  });
});

test("a gateway without its way out says so, and no tunnel is asked", async () => {
  stranded.add("one");
  await expect.poll(() => changes).toEqual(["stranded,alive"]);
  stranded.clear();
  await expect.poll(() => changes).toEqual(["stranded,alive", "alive,alive"]);
  expect(probes).toEqual([]);
});

test("what is not asked any more is forgotten", async () => {
  down.programs.add("one");
  await expect.poll(() => heartbeats.pulse(one)).toBe("suspect");
  gateways = [other];
  await expect.poll(() => heartbeats.pulse(one)).toBe("unknown");
});

describe("misses while this process stood still", () => {
  async function pulseAfterStalls(gateways: readonly WatchedGateway[]): Promise<string> {
    let now = 0;
    const stalled = new Heartbeats({
      gateways: () => gateways,
      beat: async ({ name }) => {
        now += 1_000;
        return name === "other" ? "alive" : undefined;
      },
      probe: async () => undefined,
      onChange: () => undefined,
      logger,
      clock: soon(() => now),
    });
    const signal = new AbortController();
    const run = stalled.run(signal.signal);
    await expect.poll(() => now).toBeGreaterThan(20_000);
    signal.abort();
    await run;
    return stalled.pulse(one);
  }

  test("count against nobody", async () => {
    expect(await pulseAfterStalls([one])).toBe("unknown");
  });

  test("count where another gateway was heard at the same time", async () => {
    expect(await pulseAfterStalls([one, other])).toBe("suspect");
  });
});
