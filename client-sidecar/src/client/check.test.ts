import { expect, test } from "vitest";
import type { EgressView } from "../gateways/view.ts";
import { clientRecord } from "../testing/client-record.ts";
import { checkClient } from "./check.ts";

const record = clientRecord();
const view = { egress: () => undefined, clusterRanges: [] } as Partial<EgressView> as EgressView;

/** A namespace in which something differs until somebody looks at it. */
function check(isSteered: boolean): Promise<void> {
  const differences = ["set picked has other elements"];
  const networks = {
    isSteered: () => isSteered,
    check: async () => [...differences],
    apply: async () => {
      differences.splice(0);
      return undefined;
    },
  };
  return checkClient({ registry: { owner: () => record }, networks, view }, record, record);
}

test("what differs is told, and left as it is", async () => {
  await expect(check(false)).rejects.toThrow("differs from what it should be: set picked has other elements");
});

test("what has still to follow a steering is done first, and is no difference", async () => {
  await check(true);
});
