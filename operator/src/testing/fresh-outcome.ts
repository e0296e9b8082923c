/** What should become of a namespace: what an operator makes of its state that starts with nothing, elsewhere. */

import { EGRESS_RESOURCE } from "@egress-nat/crds";
import { expect, inject } from "vitest";
import { CHILD_RESOURCES } from "../egress/children/index.ts";
import { Playground } from "./cluster.ts";
import { confinedTo } from "./confined-transport.ts";
import { collectGarbage, type Outcome, outcomeOf } from "./outcome.ts";
import { RunningOperator } from "./running-operator.ts";

const eventually = { timeout: 20_000, interval: 50 };

/** Waits until each Egress has a status that speaks of its present spec. */
export async function caughtUp(play: Playground): Promise<void> {
  await expect
    .poll(async () => Object.values((await outcomeOf(play)).statuses), eventually)
    .not.toContain(undefined);
}

/** The outcome of the same Egresses, and the same objects in their way, in a new namespace under a new operator. */
async function freshOutcome(play: Playground): Promise<Outcome> {
  using elsewhere = await Playground.create(inject("kubeconfig"));
  const { foreigners } = await outcomeOf(play);
  for (const { child, object } of foreigners) await elsewhere.create(CHILD_RESOURCES[child], object);
  for (const { metadata, spec } of await play.list(EGRESS_RESOURCE)) {
    await elsewhere.writeEgress(metadata.name, spec);
  }
  const { transport, namespace } = elsewhere;
  await using _ = RunningOperator.start(confinedTo(namespace, transport), namespace);
  await caughtUp(elsewhere);
  return await outcomeOf(elsewhere);
}

/** Waits until a namespace is what a fresh operator would have made of it. */
export async function expectAsFresh(play: Playground): Promise<void> {
  const { statuses, children } = await freshOutcome(play);
  const outcome = async () => {
    await collectGarbage(play);
    const { foreigners: _, ...rest } = await outcomeOf(play);
    return rest;
  };
  await expect.poll(outcome, eventually).toEqual({ statuses, children });
}
