import { describe, expect, test } from "vitest";
import {
  afterBeat,
  afterProbe,
  asksTunnel,
  HEARD_OF_NOTHING_BAD,
  type Heard,
  pulseOf,
  pulseOfAll,
} from "./pulse.ts";

const beats = (heard: Heard, ...answers: readonly boolean[]) =>
  answers.map((answered) => (answered ? "alive" : undefined)).reduce(afterBeat, heard);
const probes = (heard: Heard, ...answers: readonly (boolean | undefined)[]) =>
  answers.reduce(afterProbe, heard);
const quiet = beats(HEARD_OF_NOTHING_BAD, false, false, false);

describe("a gateway", () => {
  test("is unknown until somebody has heard of it", () => {
    expect(pulseOf(HEARD_OF_NOTHING_BAD)).toBe("unknown");
    expect(pulseOf(beats(HEARD_OF_NOTHING_BAD, false, false))).toBe("unknown");
    expect(pulseOf(beats(HEARD_OF_NOTHING_BAD, true))).toBe("alive");
  });

  test("is suspect after three misses in a row, not after three in all", () => {
    expect(pulseOf(beats(HEARD_OF_NOTHING_BAD, false, false, true, false, false))).toBe("alive");
    expect(pulseOf(quiet)).toBe("suspect");
  });

  test("has its tunnel asked from the first miss on, so that the answer is there in time", () => {
    expect(asksTunnel(HEARD_OF_NOTHING_BAD)).toBe(false);
    expect(asksTunnel(beats(HEARD_OF_NOTHING_BAD, false))).toBe(true);
  });

  test("is dead when nothing comes through its tunnel either", () => {
    expect(pulseOf(afterProbe(quiet, false))).toBe("suspect");
    expect(pulseOf(probes(quiet, false, false))).toBe("dead");
    expect(pulseOf(probes(quiet, false, true, false))).toBe("suspect");
  });

  test("whose tunnel answers is only suspect: its kernel goes on", () => {
    expect(pulseOf(afterProbe(quiet, true))).toBe("suspect");
  });

  test("that no client of this node has a tunnel to is never known to be dead", () => {
    expect(pulseOf(probes(quiet, undefined, undefined))).toBe("suspect");
  });

  test("stays dead once no client has a tunnel to it any more: its flows were ended", () => {
    expect(pulseOf(probes(quiet, false, false, undefined))).toBe("dead");
  });

  test("is suspect again when nobody can ask its tunnel for long, or it answers: its heartbeat may be what fails", () => {
    const dead = probes(quiet, false, false);
    expect(pulseOf(probes(dead, true))).toBe("suspect");
    expect(pulseOf(probes(dead, ...Array.from({ length: 30 }, () => undefined)))).toBe("suspect");
  });

  test("is stranded as soon as it says so, and until it does not", () => {
    const stranded = afterBeat(HEARD_OF_NOTHING_BAD, "stranded");
    expect(pulseOf(stranded)).toBe("stranded");
    expect(pulseOf(beats(stranded, false, false))).toBe("stranded");
    expect(pulseOf(beats(stranded, true))).toBe("alive");
    expect(pulseOf(beats(stranded, false, false, false))).toBe("suspect");
  });

  test("is alive again after five answers in a row, and a probe that ends later says nothing", () => {
    const answering = beats(probes(quiet, false, false), true, true, true, true);
    expect(pulseOf(answering)).toBe("suspect");
    expect(pulseOf(beats(answering, false, true))).toBe("suspect");
    const back = beats(answering, true);
    expect(pulseOf(back)).toBe("alive");
    expect(pulseOf(beats(probes(back, false, false), false, false, false))).toBe("suspect");
  });
});

test("a gateway of two addresses is down if it is down at both, and suspect if it is missed at one", () => {
  expect(pulseOfAll(["dead", "dead"])).toBe("dead");
  expect(pulseOfAll(["alive", "dead"])).toBe("suspect");
  expect(pulseOfAll(["suspect", "alive"])).toBe("suspect");
  expect(pulseOfAll(["stranded", "stranded"])).toBe("stranded");
});
