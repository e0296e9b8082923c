import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Cidr } from "@egress-nat/crds";
import { CHART } from "@egress-nat/tools/chart";
import fc from "fast-check";
import { expect, test } from "vitest";
import { nearlyACidr } from "../fuzz/addresses.ts";

const { definitions } = JSON.parse(readFileSync(join(CHART, "values.schema.json"), "utf8")) as {
  definitions: Record<"ipv4Network" | "ipv6Network", { pattern: string }>;
};
const PATTERNS = [definitions.ipv4Network, definitions.ipv6Network].map(({ pattern }) => new RegExp(pattern));

const chartTakes = (text: string) => PATTERNS.some((pattern) => pattern.test(text));
const operatorTakes = (text: string) => Cidr.safeParse(text).success;

test("the chart takes the clusterRanges that the operator takes, and no others", () => {
  fc.assert(
    fc.property(nearlyACidr, (text) => {
      // Only the operator knows IPv4-mapped addresses, and those whose end is written as IPv4.
      fc.pre(!/:.*\./.test(text) && !/^[0:]*:ffff(:[^:]*){2,3}\//i.test(text));
      expect({ text, taken: chartTakes(text) }).toEqual({ text, taken: operatorTakes(text) });
    }),
    { numRuns: 2000 },
  );
});
