import { describe, expect, it } from "vitest";
import { gateway } from "../testing/gateway.ts";
import { type Answer, askBy, beatBy } from "./health.ts";

const signal = new AbortController().signal;

describe("a heartbeat", () => {
  const asked: string[][] = [];
  const beat = (values: Map<string, string> | undefined, probesUplink: boolean) => {
    const probe = async (_address: string, _port: number, keys: Iterable<string>) => {
      asked.push([...keys]);
      return values;
    };
    return beatBy({ probe })("192.0.2.1", { probesUplink, timeoutMs: 200 });
  };

  it("asks of the way out only where the Egress has it probed", async () => {
    expect(await beat(new Map(), false)).toBe("alive");
    expect(await beat(new Map(), true)).toBe("alive");
    expect(await beat(new Map([["uplink", "silent"]]), true)).toBe("stranded");
    expect(await beat(undefined, true)).toBeUndefined();
    expect(asked).toEqual([[], ["uplink"], ["uplink"], ["uplink"]]);
  });

  it("is not answered in a family that the node does not have", async () => {
    const probe = () => Promise.reject(new Error("bind EAFNOSUPPORT ::"));
    expect(await beatBy({ probe })("2001:db8::1", { probesUplink: false, timeoutMs: 200 })).toBeUndefined();
  });
});

describe("an answer", () => {
  const answerOf = (values: Map<string, string> | undefined, generation: number | undefined) =>
    askBy({ probe: async () => values })(gateway(), { uid: "slice", generation }, signal);

  it.each<[Map<string, string> | undefined, number | undefined, Answer]>([
    [new Map([["slice", "7"]]), 7, "applied"],
    [new Map([["slice", "10"]]), 9, "applied"],
    [new Map([["slice", "6"]]), 7, "behind"],
    [new Map([["other", "9"]]), 7, "behind"],
    [new Map([["slice", "7"]]), undefined, "behind"],
    [new Map(), undefined, "applied"],
    [undefined, 7, "silent"],
  ])("%j about generation %j means %s", async (values, generation, expected) => {
    expect(await answerOf(values, generation)).toBe(expected);
  });

  it("of either family is enough", async () => {
    const probe = async (address: string) => (address.includes(":") ? new Map([["slice", "7"]]) : undefined);
    const dualStack = gateway({ addresses: ["192.0.2.1", "2001:db8::1"] });
    expect(await askBy({ probe })(dualStack, { uid: "slice", generation: 7 }, signal)).toBe("applied");
  });
});
