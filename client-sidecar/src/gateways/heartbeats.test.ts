import type { Clock } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Heartbeats, type WatchedGateway } from "./heartbeats.ts";
import type { Pulse } from "./pulse.ts";

const NAT = { namespace: "internet", name: "nat" };
const gateway = (name: string): WatchedGateway => ({ egress: NAT, name, addresses: [`of-${name}`] });
const [one, other] = [gateway("one"), gateway("other")];
const nameOf = (address: string) => address.replace(/^(v6-)?of-/, "");
const logger = createLogger({ name: "test", level: "silent" });

/** Whoever waits goes on at once. @param passed is told how long it would have been, in milliseconds */
const soon = (now: () => number, passed: (ms: number) => void = () => undefined): Clock => ({
  now,
  after: (ms, callback) => {
    passed(ms);
    setImmediate(callback);
    return () => undefined;
  },
});

let gateways: WatchedGateway[];
/** Names of gateways, or addresses, at which programs, and kernels, do not answer. */
let down: Record<"programs" | "kernels", Set<string>>;
/** Names of gateways that have lost their way out. */
let stranded: Set<string>;
let changes: string[];
/** Names of Egresses. */
let told: string[];
let beatsWhenTold: number[];
let probes: string[];
/** Of each probe, how many beats there had been. */
let beatsWhenProbed: number[];
let mostAtATime: number;
let beats: number;
/** Until an answer comes. */
let delayMs: number;
/** Of the event loop: a round takes three. */
const TURN_MS = 200 / 3;
/** Passes as fast as rounds go. */
let nowMs = 0;
let asked: string[];
/** Addresses to which clients have tunnels. */
let tunnels: (address: string) => boolean;
let heartbeats: Heartbeats;
let ended: AbortController;
let running: Promise<void>;

const isIn = (names: ReadonlySet<string>, address: string) =>
  names.has(address) || names.has(nameOf(address));
const pulsesOf = ({ addresses }: WatchedGateway): Pulse[] =>
  addresses.map((address) => heartbeats.pulse(address));

beforeEach(async () => {
  gateways = [one, other];
  down = { programs: new Set(), kernels: new Set() };
  stranded = new Set();
  tunnels = () => true;
  [changes, told, beatsWhenTold, probes, beatsWhenProbed, asked] = [[], [], [], [], [], []];
  [beats, mostAtATime, delayMs] = [0, 0, 0];
  // Some may end after their test.
  let underWay = 0;
  ended = new AbortController();
  heartbeats = new Heartbeats({
    gateways: () => gateways,
    beat: async (address, { timeoutMs }) => {
      beats += 1;
      asked.push(address);
      for (let waited = 0; waited < Math.min(delayMs, timeoutMs); waited += TURN_MS) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      if (isIn(down.programs, address) || delayMs > timeoutMs) return undefined;
      return isIn(stranded, address) ? "stranded" : "alive";
    },
    probe: async (_, address) => {
      probes.push(address);
      beatsWhenProbed.push(beats);
      underWay += 1;
      mostAtATime = Math.max(mostAtATime, underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= 1;
      if (!tunnels(address)) return undefined;
      return !isIn(down.kernels, address);
    },
    onChange: ({ name }) => {
      told.push(name);
      beatsWhenTold.push(beats);
      changes.push(gateways.flatMap(pulsesOf).join());
    },
    logger,
    clock: soon(
      () => nowMs,
      (ms) => (nowMs += ms),
    ),
  });
  running = heartbeats.run(ended.signal);
  await expect.poll(() => gateways.flatMap(pulsesOf)).toEqual(["alive", "alive"]);
  [changes, told] = [[], []];
});

afterEach(() => {
  ended.abort();
  return running;
});

test("gateways that answer stay alive, and no tunnel is asked", async () => {
  await expect.poll(() => beats).toBeGreaterThan(10);
  expect([...gateways.flatMap(pulsesOf), ...probes]).toEqual(["alive", "alive"]);
});

test.each([[["of-one"]], [["of-one", "v6-of-one"]]])(
  "a gateway at %j whose answers come later than the next question stays alive",
  async (addresses) => {
    gateways = [{ ...one, addresses }, other];
    await expect.poll(() => gateways.flatMap(pulsesOf)).not.toContain("unknown");
    [changes, delayMs] = [[], 500];
    const before = beats;
    await expect.poll(() => beats).toBeGreaterThan(before + 60);
    expect(changes).toEqual([]);
  },
);

async function fortyAlive(): Promise<readonly WatchedGateway[]> {
  gateways = Array.from({ length: 40 }, (_, index) => gateway(`${index}`));
  await expect.poll(() => new Set(gateways.flatMap(pulsesOf))).toEqual(new Set(["alive"]));
  return gateways;
}

test("of many gateways that do not answer few are asked at a time, and each in its turn", async () => {
  const many = await fortyAlive();
  for (const { name } of many) down.programs.add(name);
  await expect.poll(() => new Set(probes).size).toBe(40);
  expect(mostAtATime).toBe(16);
});

test("of many that are dead one that is in doubt is asked again before others are asked at all", async () => {
  const many = await fortyAlive();
  for (const { name } of many) for (const what of [down.programs, down.kernels]) what.add(name);
  await expect.poll(() => new Set(many.flatMap(pulsesOf))).toEqual(new Set(["dead"]));
  const [first = ""] = probes;
  const lastToBeAsked = Math.max(...many.flatMap(({ addresses: [address = ""] }) => probes.indexOf(address)));
  expect(probes.indexOf(first, 1)).toBeLessThan(lastToBeAsked);
});

describe("a gateway whose program has ended", () => {
  test("is suspect for as long as its kernel answers, and alive once its program is back", async () => {
    down.programs.add("one");
    await expect.poll(() => changes).toEqual(["suspect,alive"]);
    await expect.poll(() => probes.length).toBeGreaterThan(3);
    down.programs.clear();
    await expect.poll(() => changes).toEqual(["suspect,alive", "alive,alive"]);
    expect(new Set(probes)).toEqual(new Set(["of-one"]));
  });

  test("is dead once its kernel does not answer either, and alive once its program is back", async () => {
    down = { programs: new Set(["one"]), kernels: new Set(["one"]) };
    await expect.poll(() => pulsesOf(one)[0]).toBe("dead");
    down.programs.clear();
    await expect.poll(() => pulsesOf(one)[0]).toBe("alive");
  });

  test("is probed again as soon as a probe had no answer, and not with the next round", async () => {
    down = { programs: new Set(["one"]), kernels: new Set(["one"]) };
    await expect.poll(() => probes.length).toBeGreaterThan(1);
    const [first, second] = beatsWhenProbed;
    expect(second).toBe(first);
  });
});

describe("a gateway of two families", () => {
  const dual = { ...one, addresses: ["of-one", "v6-of-one"] };

  beforeEach(async () => {
    gateways = [dual, other];
    await expect.poll(() => pulsesOf(dual)).toEqual(["alive", "alive"]);
    [asked, changes, told] = [[], [], []];
  });

  test("is asked in one of them at a time while it answers", async () => {
    await expect.poll(() => asked.length).toBeGreaterThan(10);
    const turns = asked.filter((address) => address !== "of-other").slice(0, 4);
    const [first = "", second = ""] = turns;
    expect([first, second].sort()).toEqual(dual.addresses);
    expect(turns).toEqual([first, second, first, second]);
  });

  test.each([0, 1])("stays alive in both while heartbeats pass in one of them only: %i", async (family) => {
    down.programs = new Set([dual.addresses[family] ?? ""]);
    await expect.poll(() => probes.length).toBeGreaterThan(5);
    expect(changes).toEqual([]);
    down = { programs: new Set(["one"]), kernels: new Set(["one"]) };
    await expect.poll(() => pulsesOf(dual)).toEqual(["dead", "dead"]);
  });

  test.each([0, 1])("whose tunnel is lost in one family is suspect in that one only: %i", async (family) => {
    const lost = new Set([dual.addresses[family] ?? ""]);
    down = { programs: lost, kernels: lost };
    await expect.poll(() => pulsesOf(dual)[family]).toBe("suspect");
    await expect.poll(() => probes.length).toBeGreaterThan(5);
    expect(changes).toHaveLength(1);
    expect(pulsesOf(dual)[1 - family]).toBe("alive");
    down = { programs: new Set(), kernels: new Set() };
    await expect.poll(() => pulsesOf(dual)).toEqual(["alive", "alive"]);
  });

  test("is suspect in both after as many rounds as any other, and its Egress is told once", async () => {
    gateways = [dual];
    await expect.poll(() => asked.slice(-3)).not.toContain("of-other");
    down.programs.add("one");
    [beats, beatsWhenTold] = [0, []];
    await expect.poll(() => pulsesOf(dual)).toEqual(["suspect", "suspect"]);
    // One, then both twice.
    expect(beatsWhenTold).toEqual([5]);
  });

  test("is dead in both where clients of this node have tunnels of one family only", async () => {
    tunnels = (address) => !address.startsWith("v6");
    down = { programs: new Set(["one"]), kernels: new Set(["one"]) };
    await expect.poll(() => pulsesOf(dual)).toEqual(["dead", "dead"]);
  });
});

describe("an address that two Egresses name, because another pod has it by now", () => {
  const OTHER = { namespace: "internet", name: "other" };
  const now = { ...one, egress: OTHER, name: "now", addresses: ["shared", "its-own"] };
  const before = { ...one, name: "before", addresses: ["shared"] };

  test("clients of both are told", async () => {
    gateways = [now, before];
    await expect.poll(() => told.length).toBe(2);
    told = [];
    const lost = new Set(["shared", "its-own"]);
    down = { programs: lost, kernels: lost };
    await expect.poll(() => pulsesOf(now)[0]).toBe("dead");
    await expect.poll(() => new Set(told)).toEqual(new Set(["nat", "other"]));
    expect(told.filter((name) => name === "nat")).toHaveLength(told.length / 2);
  });

  test("is suspect after as many rounds as any other", async () => {
    gateways = [now, before];
    await expect.poll(() => told.length).toBe(2);
    down.programs = new Set(["shared", "its-own"]);
    [beats, beatsWhenTold] = [0, []];
    await expect.poll(() => pulsesOf(now)[0]).toBe("suspect");
    // One address or both, then both twice.
    expect([5, 6]).toContain(beatsWhenTold[0]);
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
  await expect.poll(() => pulsesOf(one)[0]).toBe("suspect");
  gateways = [other];
  await expect.poll(() => pulsesOf(one)[0]).toBe("unknown");
});

describe("misses while this process stood still", () => {
  /** @param rounds of one of them: in `+` it answers at once, in `-` not for the second that the round takes */
  async function after(rounds: string, gateways: readonly WatchedGateway[]) {
    let [now, round, settledIn] = [0, 0, 0];
    const signal = new AbortController();
    const stalled = new Heartbeats({
      gateways: () => gateways,
      beat: async (address) => {
        if (address === "of-other") return "alive";
        const said = rounds[round];
        round += 1;
        if (round === rounds.length) signal.abort();
        if (said === "+") return "alive";
        now += 1_000;
        return undefined;
      },
      probe: async () => undefined,
      onChange: () => undefined,
      logger,
      clock: soon(() => now),
    });
    void stalled.settled.then(() => (settledIn = round));
    await stalled.run(signal.signal);
    return { pulse: stalled.pulse("of-one"), settledIn };
  }

  test("count against nobody", async () => {
    expect(await after("+-----+-----", [one])).toMatchObject({ pulse: "alive" });
  });

  test("tell an agent that starts nothing: it waits for as many other rounds", async () => {
    expect(await after("-+-++++", [one])).toMatchObject({ settledIn: 5 });
  });

  test("count where it is late again and again", async () => {
    expect(await after("+--------", [one])).toMatchObject({ pulse: "suspect" });
  });

  test("count where another gateway was heard at the same time", async () => {
    expect(await after("+---", [one, other])).toMatchObject({ pulse: "suspect" });
  });
});
