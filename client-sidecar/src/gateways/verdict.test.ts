import { describe, expect, it } from "vitest";
import type { Answer } from "./health.ts";
import { type Patience, type Verdict, verdict } from "./verdict.ts";

const PATIENCE: Patience = { silenceMs: 2_000, deadlineMs: 20_000 };

describe("a client", () => {
  it.each<[string, Readonly<Record<string, Answer>>, number, Verdict]>([
    ["starts when all have applied it", { a: "applied" }, 0, { decision: "start", leftOut: [] }],
    ["waits for one that is behind", { a: "applied", b: "behind" }, 19_999, { decision: "wait" }],
    ["gives one that is silent two seconds", { a: "applied", b: "silent" }, 1_999, { decision: "wait" }],
    ["starts without it then", { a: "applied", b: "silent" }, 2_000, { decision: "start", leftOut: ["b"] }],
    ["waits while nobody has applied it", { a: "silent" }, 2_000, { decision: "wait" }],
    ["waits for gateways to come", {}, 19_999, { decision: "wait" }],
    [
      "is refused at the end because of those that are behind",
      { a: "applied", b: "behind", c: "silent" },
      20_000,
      { decision: "refuse", cause: "behind", gateways: ["b"] },
    ],
    [
      "is refused at the end because none answers",
      { a: "silent", b: "silent" },
      20_000,
      { decision: "refuse", cause: "silent", gateways: ["a", "b"] },
    ],
    [
      "is refused at the end because there is none",
      {},
      20_000,
      { decision: "refuse", cause: "none", gateways: [] },
    ],
  ])("%s", (_, answers, elapsedMs, expected) => {
    expect(verdict(new Map(Object.entries(answers)), elapsedMs, PATIENCE)).toEqual(expected);
  });

  it.each([PATIENCE.deadlineMs, Infinity])(
    "waits for a silent one until the deadline at most: %d",
    (silenceMs) => {
      const judge = (elapsedMs: number) =>
        verdict(
          new Map([
            ["a", "applied"],
            ["b", "silent"],
          ]),
          elapsedMs,
          { ...PATIENCE, silenceMs },
        );
      expect(judge(19_999)).toEqual({ decision: "wait" });
      expect(judge(20_000)).toEqual({ decision: "start", leftOut: ["b"] });
    },
  );
});
