import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Cidr } from "@egress-nat/crds";
import { CHART } from "@egress-nat/tools/chart";
import fc from "fast-check";
import { expect, test } from "vitest";

const { definitions } = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")) as {
  definitions: Record<"ipv4Network" | "ipv6Network", { pattern: string }>;
};
const PATTERNS = [definitions.ipv4Network, definitions.ipv6Network].map(({ pattern }) => new RegExp(pattern));

const chartTakes = (text: string) => PATTERNS.some((pattern) => pattern.test(text));
const operatorTakes = (text: string) => Cidr.safeParse(text).success;

const ipv6 = fc.oneof(
  fc.ipV6().filter((address) => !address.includes(".")),
  // Zeros of any number, at any place, are left out.
  fc
    .tuple(fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 0, maxLength: 7 }), fc.nat(7))
    .map(([groups, place]) => {
      const texts = groups.map((group) => group.toString(16));
      return `${texts.slice(0, place).join(":")}::${texts.slice(place).join(":")}`;
    }),
);
const prefix = fc.oneof(fc.nat(140).map(String), fc.constantFrom("", "08", "1e1", "-1", "24 ", "24\n"));
const almost = fc
  .tuple(fc.oneof(fc.ipV4(), ipv6), fc.stringMatching(/^[0-9a-f:./]{0,3}$/), fc.nat(40))
  .map(([address, noise, place]) => address.slice(0, place) + noise + address.slice(place));

test("the chart takes the clusterRanges that the operator takes, and no others", () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), ipv6, almost), prefix, (address, length) => {
      const text = `${address}/${length}`;
      // Only the operator knows IPv4-mapped addresses, and those whose end is written as IPv4.
      fc.pre(!/:.*\./.test(text) && !/^[0:]*:ffff:[^:]*:[^:]*\//i.test(text));
      expect({ text, taken: chartTakes(text) }).toEqual({ text, taken: operatorTakes(text) });
    }),
    { numRuns: 2000 },
  );
});
