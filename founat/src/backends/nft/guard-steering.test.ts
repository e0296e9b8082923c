import { expect, test } from "vitest";
import type { Pin } from "../../client/mark.ts";
import type { Ways } from "../../client/policy.ts";
import { guardSteering } from "./guard-steering.ts";

const pins = [1, 2, 3, 4].map(
  (number): Pin => ({
    ...{ family: "ipv4", link: `fou4_${number}`, number },
    mark: { value: number << 24, mask: 0xff000000 },
  }),
);

/** Flows of all links begin with some gateways. */
function beginWith(...numbers: readonly number[]): Ways {
  const chosen = pins.filter(({ number }) => numbers.includes(number));
  const choices = pins.map(({ link }) => ({ link, pins: chosen }));
  return { pins, choices, late: { ipv4: chosen, ipv6: [] }, oneWay: false };
}

/** What is sent to the kernel, as text: names can be read in it. */
function written(current: Ways, former: Ways): string | undefined {
  const [command] = guardSteering({ current, former });
  return command && Buffer.from(command.input ?? "", "hex").toString("latin1");
}

test("where all stays, nothing is written", () => {
  expect(written(beginWith(1, 2), beginWith(1, 2))).toBeUndefined();
});

test("of gateways that are what they were nothing is written", () => {
  const bytes = written(beginWith(1, 2, 3), beginWith(1, 2, 3, 4));
  expect(bytes).toContain("fou4_4");
  expect(bytes).not.toContain("fou4_3");
});
