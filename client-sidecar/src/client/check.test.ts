import { expect, test } from "vitest";
import type { EgressView } from "../gateways/view.ts";
import { clientRecord } from "../testing/client-record.ts";
import { checkClient } from "./check.ts";

const record = clientRecord();
const view = { egress: () => undefined, gateways: () => [], clusterRanges: [] } as Partial<EgressView>;

/**
 * Checks a namespace in which something differs until somebody looks at it.
 *
 * @param checks that find it before a look is due
 */
async function check(checks: number): Promise<number> {
  let [checked, looked] = [0, 0];
  const isDue = () => checked >= checks && looked === 0;
  await checkClient(
    {
      registry: { owner: () => record },
      networks: {
        check: async () => {
          checked += 1;
          return looked > 0 ? [] : ["set picked has other elements"];
        },
      },
      reapplier: {
        isDue,
        reapply: () => {
          setTimeout(() => {
            looked += 1;
          }, 50);
        },
      },
      view: view as EgressView,
    },
    record,
    record,
    new AbortController().signal,
  );
  return looked;
}

test("what differs is told", async () => {
  await expect(check(Number.POSITIVE_INFINITY)).rejects.toThrow(
    "differs from what it should be: set picked has other elements",
  );
});

test.each([
  ["before", 0],
  ["meanwhile", 1],
])("what has still to follow a steering %s is done at once, and is no difference", async (_, checks) => {
  expect(await check(checks)).toBe(1);
});
