import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GatewayEvent } from "../gateway-event.ts";
import { Uplink } from "./uplink.ts";

const [V4, OTHER_V4, V6] = ["192.0.2.1", "192.0.2.2", "2001:db8::1"];

let targets: string[];
/** What other gateways say of theirs. */
let others: boolean[];
let events: GatewayEvent[];
/** By address, those that are being asked. */
let asking: Map<string, (answered: boolean) => void>;
let uplink: Uplink;
let ended: AbortController;
let running: Promise<void>;

beforeEach(() => {
  [targets, others, events] = [[V4, OTHER_V4, V6], [true], []];
  asking = new Map();
  ended = new AbortController();
  uplink = new Uplink({
    targets: () => targets,
    askOthers: async () => others,
    ping: async (address, onRequest, signal) => {
      asking.set(address, onRequest);
      signal.addEventListener("abort", () => asking.delete(address));
    },
    recordEvent: (event) => events.push(event),
    logger: createLogger({ name: "test", level: "silent" }),
    // As fast as looks go.
    clock: {
      now: () => 0,
      after: (_, callback) => {
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
  expect([uplink.isSilent, uplink.reason, events]).toEqual([false, undefined, []]);
});

describe("a gateway that gets no answer from a family", () => {
  test("takes itself out while another one has its way, and comes back by itself", async () => {
    await say(false, V6);
    await expect.poll(() => uplink.reason).toBe("uplink: no answer from 2001:db8::1");
    await say(true, V6);
    await expect.poll(() => uplink.reason).toBeUndefined();
    expect(reasons()).toEqual(["UplinkLost", "UplinkBack"]);
  });

  test.each([
    ["no other has its way either", [false, false]],
    ["no other answers", []],
  ])("stays in use where %s, and says so", async (_, said) => {
    others = said;
    await say(false, V4, OTHER_V4);
    await expect.poll(reasons).toEqual(["UplinkTargetsSilent"]);
    expect([uplink.isSilent, uplink.reason]).toEqual([true, undefined]);
    others = [true];
    await expect.poll(() => uplink.reason).toBe("uplink: no answer from 192.0.2.1, 192.0.2.2");
  });
});

test("what is asked follows the Egress", async () => {
  await say(false, V6);
  await expect.poll(() => uplink.isSilent).toBe(true);
  targets = [V4];
  await expect.poll(() => [...asking.keys()]).toEqual([V4]);
  expect(uplink.isSilent).toBe(false);
  targets = [];
  await expect.poll(() => asking.size).toBe(0);
  expect(uplink.isSilent).toBe(false);
});
