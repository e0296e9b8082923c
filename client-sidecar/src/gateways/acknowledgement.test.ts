import type { Clock } from "@egress-nat/kube";
import { describe, expect, it } from "vitest";
import { gateway as gatewayOf } from "../testing/gateway.ts";
import { awaitAcknowledgement, holders } from "./acknowledgement.ts";
import type { Answer, Ask } from "./health.ts";
import type { Gateway } from "./view.ts";

const VERSION = { uid: "slice", generation: 7 };
const signal = new AbortController().signal;

function gateway(name: string, conditions: Partial<Gateway> = {}): Gateway {
  return gatewayOf({ name, ...conditions });
}

/** Time that passes only while somebody waits for it. */
function fakeClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    after: (delayMs, callback) => {
      now += delayMs;
      queueMicrotask(callback);
      return () => undefined;
    },
  };
}

/** Gateways that answer as a script says, the last answer for ever. */
function scripted(script: Readonly<Record<string, readonly Answer[]>>): Ask {
  const asked = new Map<string, number>();
  return async ({ name }) => {
    const turn = asked.get(name) ?? 0;
    asked.set(name, turn + 1);
    return script[name]?.[turn] ?? script[name]?.at(-1) ?? "silent";
  };
}

function wait(
  script: Readonly<Record<string, readonly Answer[]>>,
  gateways = Object.keys(script).map((n) => gateway(n)),
) {
  const ask = scripted(script);
  return awaitAcknowledgement({
    ...{ ask, signal, version: VERSION, clock: fakeClock() },
    patience: { silenceMs: 2_000, deadlineMs: 20_000 },
    gateways: () => gateways,
  });
}

describe("waiting for gateways", () => {
  it.each<[string, Record<string, Answer[]>, object]>([
    ["all have applied it", { a: ["applied"], b: ["applied"] }, { decision: "start", leftOut: [] }],
    [
      "one takes its time",
      { a: ["applied"], b: ["behind", "behind", "applied"] },
      { decision: "start", leftOut: [] },
    ],
    ["one never answers", { a: ["applied"], b: ["silent"] }, { decision: "start", leftOut: ["b"] }],
    [
      "one answers late",
      { a: ["applied"], b: ["silent", "silent", "applied"] },
      { decision: "start", leftOut: [] },
    ],
    [
      "one has answered, and then loses a datagram",
      { a: ["applied"], b: ["behind", "silent", "applied"] },
      { decision: "start", leftOut: [] },
    ],
    [
      "one stays behind",
      { a: ["applied"], b: ["behind"] },
      { decision: "refuse", cause: "behind", gateways: ["b"] },
    ],
    ["none answers", { a: ["silent"] }, { decision: "refuse", cause: "silent", gateways: ["a"] }],
    ["there is none", {}, { decision: "refuse", cause: "none", gateways: [] }],
  ])("ends rightly when %s", async (_, script, result) => {
    expect(await wait(script)).toEqual(result);
  });

  it("asks only those that are ready", async () => {
    const gateways = [gateway("a"), gateway("b", { ready: false })];
    expect(await wait({ a: ["applied"], b: ["behind"] }, gateways)).toEqual({
      decision: "start",
      leftOut: [],
    });
  });
});

describe("an address", () => {
  const crashing = gateway("crashing", { ready: false, serving: false });

  it.each<[string, readonly Gateway[], Answer, readonly string[]]>([
    ["is free when a gateway has let go of it", [gateway("a")], "applied", []],
    ["is free when no gateway is left", [], "silent", []],
    ["is held by a gateway that is behind", [gateway("a")], "behind", ["a"]],
    ["is held by a gateway that does not answer", [gateway("a")], "silent", ["a"]],
    ["is held by a gateway whose program is down: its kernel trusts it", [crashing], "silent", ["crashing"]],
    ["is held by a gateway that is not ready and answers for it", [crashing], "behind", ["crashing"]],
  ])("%s", async (_, gateways, answer, held) => {
    const ask = scripted(Object.fromEntries(gateways.map(({ name }) => [name, [answer]])));
    expect(await holders(ask, gateways, VERSION, signal)).toEqual(held);
  });
});
