import { FAMILIES, type Family } from "@egress-nat/addresses";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GatewayEvent } from "../gateway-event.ts";
import { Uplink } from "./uplink.ts";

const [V4, OTHER_V4, V6] = ["192.0.2.1", "192.0.2.2", "2001:db8::1"];

/** Undefined while the Egress is not known. */
let targets: string[] | undefined;
/** In which families other gateways have theirs. */
let others: Set<Family>;
/** How often they were asked by a gateway that takes no new flows. */
let asked: number;
let events: GatewayEvent[];
/** Whether there is no other gateway. */
let isAlone: boolean;
let nowMs: number;
/** By address, those that are being asked. */
let asking: Map<string, (answered: boolean) => void>;
let uplink: Uplink;
let ended: AbortController;
let running: Promise<void>;

beforeEach(() => {
  [targets, events, asked, nowMs] = [[V4, OTHER_V4, V6], [], 0, 0];
  others = new Set(FAMILIES);
  isAlone = false;
  asking = new Map();
  ended = new AbortController();
  uplink = new Uplink({
    targets: () => targets,
    families: new Set(FAMILIES),
    askOthers: async () => {
      if (uplink.reason !== undefined) asked += 1;
      return others;
    },
    isAlone: () => isAlone,
    ping: async (address, onRequest, signal) => {
      asking.set(address, onRequest);
      signal.addEventListener("abort", () => asking.delete(address));
    },
    recordEvent: (event) => events.push(event),
    logger: createLogger({ name: "test", level: "silent" }),
    // As fast as looks go.
    clock: {
      now: () => nowMs,
      after: (ms, callback) => {
        nowMs += ms;
        setImmediate(callback);
        return () => undefined;
      },
    },
  });
  running = uplink.run(ended.signal);
});

afterEach(() => {
  ended.abort();
  return running;
});

async function say(answered: boolean, ...addresses: readonly string[]): Promise<void> {
  await expect.poll(() => [...asking.keys()]).toEqual(expect.arrayContaining([...addresses]));
  for (const address of addresses) for (let count = 0; count < 3; count += 1) asking.get(address)?.(answered);
}

const reasons = () => events.map(({ reason }) => reason);

test("one address of a family that answers is enough", async () => {
  await say(false, V4);
  await say(true, OTHER_V4, V6);
  await expect.poll(() => uplink.reason).toBeUndefined();
  expect([uplink.heartbeat("uplink-ipv4"), uplink.heartbeat("uplink-ipv6")]).toEqual(["works", "works"]);
  expect([uplink.heartbeat("uplink"), uplink.reason]).toEqual([undefined, undefined]);
  expect(events).toEqual([]);
});

test("nobody is told that a family works before an address of it has answered", async () => {
  await say(true, V6);
  expect([uplink.heartbeat("uplink-ipv4"), uplink.heartbeat("uplink-ipv6")]).toEqual([undefined, "works"]);
});

describe("a gateway that gets no answer from a family any more", () => {
  beforeEach(async () => {
    await say(true, V4, OTHER_V4, V6);
    await expect.poll(() => uplink.reason).toBeUndefined();
  });

  test("takes itself out while another one has its way, and comes back by itself", async () => {
    await say(false, V6);
    await expect.poll(() => uplink.reason).toBe("uplink: no answer from 2001:db8::1");
    expect(uplink.heartbeat("uplink")).toBe("lost");
    asking.get(V6)?.(true);
    asking.get(V6)?.(false);
    await say(true, V6);
    await expect.poll(() => uplink.reason).toBeUndefined();
    expect(reasons()).toEqual(["UplinkLost", "UplinkBack"]);
  });

  test("vouches for no family while it is out: two that lose different ones would drive each other out", async () => {
    expect(uplink.heartbeat("uplink-ipv4")).toBe("works");
    await say(false, V6);
    await expect.poll(() => uplink.reason).toBeDefined();
    expect(uplink.heartbeat("uplink-ipv4")).toBeUndefined();
    await say(true, V6);
    await expect.poll(() => uplink.heartbeat("uplink-ipv4")).toBe("works");
  });

  test("tells each loss by another event: of one that repeats the gateway may not change the count", async () => {
    for (const answered of [false, true, false, true]) {
      const told = events.length;
      await say(answered, V6);
      await expect.poll(() => events.length).toBe(told + 1);
    }
    expect(new Set(events.map(({ message }) => message)).size).toBe(4);
  });

  test("stays in use where no other has its way in that family, and says so", async () => {
    others = new Set(["ipv6"]);
    await say(false, V4, OTHER_V4);
    await expect.poll(reasons).toEqual(["UplinkTargetsSilent"]);
    expect(uplink.reason).toBeUndefined();
    others = new Set(["ipv4"]);
    await expect.poll(() => uplink.reason).toBe("uplink: no answer from 192.0.2.1, 192.0.2.2");
  });

  test("stays out while nobody vouches for a moment, and is in use again where nobody does for long", async () => {
    await say(false, V6);
    await expect.poll(() => uplink.reason).toBeDefined();
    [others, asked] = [new Set(), 0];
    await expect.poll(() => uplink.reason).toBeUndefined();
    expect(asked).toBe(41);
    expect(reasons()).toEqual(["UplinkLost", "UplinkTargetsSilent"]);
  });

  test("leaves for a family that others have, although another family is silent everywhere", async () => {
    others = new Set();
    await say(false, V6);
    await expect.poll(reasons).toEqual(["UplinkTargetsSilent"]);
    others = new Set(["ipv4"]);
    await say(false, V4, OTHER_V4);
    await expect.poll(() => uplink.reason).toBe("uplink: no answer from 192.0.2.1, 192.0.2.2, 2001:db8::1");
  });

  test("does not take others that have their way back a moment earlier for a sign that it is lost", async () => {
    others = new Set();
    await say(false, V4, OTHER_V4);
    await expect.poll(reasons).toEqual(["UplinkTargetsSilent"]);
    asking.get(V4)?.(true);
    others = new Set(["ipv4"]);
    await say(true, V4);
    await expect.poll(reasons).toEqual(["UplinkTargetsSilent", "UplinkBack"]);
  });
});

describe("a new gateway", () => {
  test("takes no flow before an address of each family has answered", async () => {
    expect(uplink.reason).toBe("uplink: no answer yet from 192.0.2.1, 192.0.2.2, 2001:db8::1");
    await say(true, OTHER_V4);
    expect(uplink.reason).toBe("uplink: no answer yet from 2001:db8::1");
    await say(true, V6);
    await expect.poll(() => uplink.reason).toBeUndefined();
    expect(events).toEqual([]);
  });

  test("that has no way out takes none, as long as another one has its way", async () => {
    await say(true, V4);
    await say(false, V6);
    await expect.poll(reasons).toEqual(["UplinkLost"]);
    expect(uplink.reason).toBe("uplink: no answer from 2001:db8::1");
  });

  test("waits ten seconds for addresses that answer nobody: a voucher may not have been heard", async () => {
    others = new Set();
    await say(false, V4, OTHER_V4, V6);
    expect(uplink.reason).toBe("uplink: no answer from 192.0.2.1, 192.0.2.2, 2001:db8::1");
    asked = 0;
    await expect.poll(() => uplink.reason).toBeUndefined();
    expect(asked).toBeGreaterThanOrEqual(39);
    expect(reasons()).toEqual(["UplinkTargetsSilent"]);
  });
});

test("a gateway that is alone waits for nobody", async () => {
  [isAlone, others] = [true, new Set()];
  await say(false, V4, OTHER_V4, V6);
  await expect.poll(reasons).toEqual(["UplinkTargetsSilent"]);
  expect(asked).toBe(1);
  expect(uplink.reason).toBeUndefined();
});

test("a new address brings no gateway back that has lost its way out, before it has answered", async () => {
  await say(true, V4, OTHER_V4, V6);
  await expect.poll(() => uplink.reason).toBeUndefined();
  await say(false, V6);
  await expect.poll(reasons).toEqual(["UplinkLost"]);
  const added = "2001:db8::2";
  targets = [V4, V6, added];
  await expect.poll(() => asking.has(added)).toBe(true);
  const askedAtMs = nowMs;
  await expect.poll(() => nowMs).toBeGreaterThan(askedAtMs + 5_000);
  expect([uplink.heartbeat("uplink"), ...reasons()]).toEqual(["lost", "UplinkLost"]);
  await say(true, added);
  await expect.poll(reasons).toEqual(["UplinkLost", "UplinkBack"]);
});

test("what is not asked yet takes no gateway out that is in use", async () => {
  await say(true, V4, V6);
  await expect.poll(() => uplink.reason).toBeUndefined();
  targets = [OTHER_V4];
  await expect.poll(() => [...asking.keys()]).toEqual([OTHER_V4]);
  expect(uplink.reason).toBeUndefined();
});

describe("before the Egress is known", () => {
  beforeEach(() => {
    targets = undefined;
  });

  test("nothing is taken for a way out that works", async () => {
    await expect.poll(() => asking.size).toBe(0);
    targets = [V4];
    expect(uplink.reason).toBe("uplink: not tried yet");
    await say(true, V4);
    await expect.poll(() => uplink.reason).toBeUndefined();
  });
});

test("what is asked follows the Egress", async () => {
  await say(true, V4);
  await say(false, V6);
  await expect.poll(() => uplink.reason).toBeDefined();
  targets = [V4];
  await expect.poll(() => [...asking.keys()]).toEqual([V4]);
  await expect.poll(() => uplink.reason).toBeUndefined();
  targets = [];
  await expect.poll(() => asking.size).toBe(0);
});
