import { setTimeout as sleep } from "node:timers/promises";
import type { Transport } from "@egress-nat/kube";
import { expect, inject, test } from "vitest";
import { Playground } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { caughtUp } from "./testing/fresh-outcome.ts";
import { RunningOperator } from "./testing/running-operator.ts";

/** Longer than any answer to a write takes. */
const WATCH_LAG_MS = 1000;

/** Until the watches have told of all that was written, one line after the other, and what is put off for that is done. */
const SETTLED_AFTER_MS = 3 * WATCH_LAG_MS;

/** What is written is seen by the watches later than its answer comes. */
function withLateWatches(transport: Transport): Transport {
  return {
    request: (options) => transport.request(options),
    stream: async (options) => late(await transport.stream(options), options.query?.watch === true),
    close: () => transport.close(),
  };
}

async function* late(chunks: AsyncIterable<Buffer>, isWatch: boolean): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    if (isWatch) await sleep(WATCH_LAG_MS);
    yield chunk;
  }
}

async function reconciles(operator: RunningOperator): Promise<number> {
  const samples = await operator.metric("egress_nat_operator_reconciles_total");
  return samples.reduce(
    (sum, { controller, value }) => sum + (controller === "egress" ? Number(value) : 0),
    0,
  );
}

test("an Egress is not looked at again for what the operator itself has written", async () => {
  using play = await Playground.create(inject("kubeconfig"));
  const transport = confinedTo(play.namespace, withLateWatches(play.transport));
  await using operator = RunningOperator.start(transport, play.namespace);
  // The networks of the cluster, which an operator publishes when it starts, concern all Egresses.
  await play.createEgress("first");
  await caughtUp(play);
  await sleep(SETTLED_AFTER_MS);
  const before = await reconciles(operator);
  await play.createEgress("second");
  await caughtUp(play);
  await sleep(SETTLED_AFTER_MS);
  expect((await reconciles(operator)) - before).toBe(1);
});
