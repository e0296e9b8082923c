import { expect, test } from "vitest";
import type { EgressView } from "../gateways/view.ts";
import { clientRecord } from "../testing/client-record.ts";
import { checkClient } from "./check.ts";

const record = clientRecord();
const view = { egress: () => undefined, gateways: () => [], clusterRanges: [] } as Partial<EgressView>;

/** A namespace in which something differs until somebody looks at it. */
function check(steered: boolean): Promise<void> {
  let isSteered = steered;
  const networks = {
    isSteered: () => isSteered,
    check: async () => (isSteered === steered ? ["set picked has other elements"] : []),
  };
  const reapplier = {
    reapply: () => {
      setTimeout(() => {
        isSteered = false;
      }, 50);
    },
  };
  const options = { registry: { owner: () => record }, networks, reapplier, view: view as EgressView };
  return checkClient(options, record, record, new AbortController().signal);
}

test("what differs is told", async () => {
  await expect(check(false)).rejects.toThrow("differs from what it should be: set picked has other elements");
});

test("what has still to follow a steering is done first, and is no difference", async () => {
  await check(true);
});
