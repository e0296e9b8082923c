import { describe, expect, test } from "vitest";
import {
  afterBeats,
  afterProbe,
  askedIn,
  type Beat,
  HEARD_OF_NOTHING_BAD,
  type Heard,
  probeAgainMs,
  pulseOfAll,
  pulsesOf,
} from "./pulse.ts";

/** Of a gateway with one address. */
const beat = (heard: Heard, answer: Beat): Heard => {
  const [after = heard] = afterBeats([heard], [answer]);
  return after;
};
const beats = (heard: Heard, ...answers: readonly boolean[]) =>
  answers.reduce<Heard>((before, answered) => beat(before, answered ? "alive" : undefined), heard);
const probes = (heard: Heard, ...answers: readonly (boolean | undefined)[]) =>
  answers.reduce(afterProbe, heard);
const pulseOf = (heard: Heard) => pulsesOf([heard])[0];
const asksTunnel = (heard: Heard) => probeAgainMs(heard, []) !== undefined;
const well = beats(HEARD_OF_NOTHING_BAD, true);
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
    const stranded = beat(HEARD_OF_NOTHING_BAD, "stranded");
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

/** After five answers at the first of two addresses. */
const back = (...heard: readonly Heard[]) =>
  Array.from({ length: 5 }).reduce<readonly Heard[]>(
    (before) => afterBeats(before, ["alive", undefined]),
    heard,
  );

describe("a gateway of two families", () => {
  test("is alive in both as long as its program answers in one: a policy may drop heartbeats of the other", () => {
    expect(pulsesOf([well, quiet])).toEqual(["alive", "alive"]);
    expect(pulsesOf([well, afterProbe(quiet, true)])).toEqual(["alive", "alive"]);
    expect(pulsesOf([beats(HEARD_OF_NOTHING_BAD, true), HEARD_OF_NOTHING_BAD])).toEqual(["alive", "alive"]);
  });

  test("is alive in one that no client of this node has", () => {
    expect(pulsesOf([well, probes(quiet, undefined, undefined)])).toEqual(["alive", "alive"]);
  });

  test("is stranded in both when it says so in one", () => {
    const stranded = beat(HEARD_OF_NOTHING_BAD, "stranded");
    expect(pulsesOf([quiet, stranded])).toEqual(["stranded", "stranded"]);
  });

  test("is suspect in one in which its tunnel does not answer either, however long: its flows go on if it comes back", () => {
    expect(pulsesOf([well, afterProbe(quiet, false)])).toEqual(["alive", "suspect"]);
    const lost = probes(quiet, ...Array.from({ length: 20 }, () => false));
    expect(pulsesOf([well, lost])).toEqual(["alive", "suspect"]);
    expect(pulsesOf([well, probes(lost, true)])).toEqual(["alive", "alive"]);
  });

  test("is suspect in one until it answers five times there, or its tunnel does", () => {
    const lost = probes(quiet, false);
    const answered = (times: number) =>
      Array.from({ length: times }).reduce<readonly Heard[]>(
        (before) => afterBeats(before, ["unasked", "alive"]),
        [well, lost],
      );
    expect(pulsesOf(answered(4))).toEqual(["alive", "suspect"]);
    expect(pulsesOf(answered(5))).toEqual(["alive", "alive"]);
    expect(pulsesOf([well, probes(lost, true)])).toEqual(["alive", "alive"]);
  });

  test("is tried again in one to which nobody has had a tunnel for half a minute", () => {
    const lost = probes(quiet, false, false);
    const unasked = (times: number) => probes(lost, ...Array.from({ length: times }, () => undefined));
    expect(pulsesOf([well, unasked(29)])).toEqual(["alive", "suspect"]);
    expect(pulsesOf([well, unasked(30)])).toEqual(["alive", "alive"]);
    expect(pulsesOf([well, probes(unasked(30), false)])).toEqual(["alive", "suspect"]);
  });

  test("is suspect in both when its program answers in none, and dead when nothing comes through any tunnel either", () => {
    expect(pulsesOf([quiet, quiet])).toEqual(["suspect", "suspect"]);
    expect(pulsesOf([probes(quiet, false, false), probes(quiet, true)])).toEqual(["suspect", "suspect"]);
    expect(pulsesOf([probes(quiet, false, false), probes(quiet, false)])).toEqual(["suspect", "suspect"]);
    expect(pulsesOf([probes(quiet, false, false), probes(quiet, false, false)])).toEqual(["dead", "dead"]);
  });

  test("is dead where clients of this node have one of them only", () => {
    expect(pulsesOf([probes(quiet, false, false), probes(quiet, undefined)])).toEqual(["dead", "dead"]);
    expect(pulsesOf([probes(quiet, undefined), probes(quiet, undefined)])).toEqual(["suspect", "suspect"]);
  });

  test("is dead also where those who had a tunnel in one of them are gone before they have asked twice", () => {
    expect(pulsesOf([probes(quiet, false, false), probes(quiet, false, undefined)])).toEqual([
      ...["dead", "dead"],
    ]);
  });

  test("is unknown at an address that the API names anew, and stays what it was at the other", () => {
    expect(pulsesOf([quiet, HEARD_OF_NOTHING_BAD])).toEqual(["suspect", "unknown"]);
    expect(pulsesOf([probes(quiet, false, false), HEARD_OF_NOTHING_BAD])).toEqual(["dead", "unknown"]);
  });

  test("that comes back is alive in both, although heartbeats of one are dropped: its tunnels are gone, and all was silent", () => {
    const dead = probes(quiet, false, false, undefined);
    expect(pulsesOf(back(dead, dead))).toEqual(["alive", "alive"]);
    expect(pulsesOf(back(dead, dead).map((each) => afterProbe(each, false)))).toEqual(["alive", "suspect"]);
  });

  test("that comes back stays suspect in one whose tunnel is there and silent", () => {
    const dead = probes(quiet, false, false);
    expect(pulsesOf(back(dead, dead))).toEqual(["alive", "suspect"]);
  });

  test("is not dead from its first answer on", () => {
    const dead = [probes(quiet, undefined), probes(quiet, false, false)];
    expect(pulsesOf(dead)).toEqual(["dead", "dead"]);
    expect(pulsesOf(afterBeats(dead, ["alive", undefined]))).toEqual(["suspect", "suspect"]);
  });

  test("is asked in one of them at a time, in both after a miss, and now and then in one that stays silent", () => {
    const asked = (round: number, ...heard: readonly Heard[]) =>
      askedIn(round, heard).flatMap((isAsked, index) => (isAsked ? [index] : []));
    expect([0, 1, 2].map((round) => asked(round, well, well))).toEqual([[0], [1], [0]]);
    expect(asked(1, HEARD_OF_NOTHING_BAD, HEARD_OF_NOTHING_BAD)).toEqual([0, 1]);
    expect(asked(1, beats(well, false), beats(well, false))).toEqual([0, 1]);
    expect(asked(1, well, beats(well, false))).toEqual([0, 1]);
    expect(Array.from({ length: 6 }, (_, round) => asked(round, well, quiet))).toEqual([
      ...[[0, 1], [0], [0], [0], [0]],
      [0, 1],
    ]);
  });

  test("has its tunnel of a silent family asked, seldom while it answers", () => {
    expect(probeAgainMs(beats(well, false), [well])).toBeUndefined();
    expect(probeAgainMs(afterProbe(quiet, true), [well])).toBe(5_000);
    expect(probeAgainMs(afterProbe(quiet, undefined), [well])).toBe(1_000);
    expect(probeAgainMs(afterProbe(quiet, false), [well])).toBe(1_000);
    // The moment in which it may have died.
    expect(probeAgainMs(afterProbe(quiet, true), [beats(well, false)])).toBe(0);
    expect(probeAgainMs(afterProbe(quiet, true), [quiet])).toBe(1_000);
  });
});

test("a gateway as a whole is as the worst of its addresses", () => {
  expect(pulseOfAll(["dead", "dead"])).toBe("dead");
  expect(pulseOfAll(["alive", "suspect"])).toBe("suspect");
  expect(pulseOfAll(["suspect", "alive"])).toBe("suspect");
  expect(pulseOfAll(["stranded", "stranded"])).toBe("stranded");
});
