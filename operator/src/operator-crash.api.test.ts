import { isDeepStrictEqual } from "node:util";
import { describe, expect, inject, test } from "vitest";
import { CHILD_RESOURCES } from "./egress/children/index.ts";
import { Playground } from "./testing/cluster.ts";
import { confinedTo } from "./testing/confined-transport.ts";
import { ELABORATE } from "./testing/elaborate-egress.ts";
import { caughtUp } from "./testing/fresh-outcome.ts";
import { type Death, MortalTransport } from "./testing/mortal-transport.ts";
import { outcomeOf } from "./testing/outcome.ts";
import { RunningOperator } from "./testing/running-operator.ts";

/** Several children and the status. */
const FEWEST_WRITES = 3;

const eventually = { timeout: 20_000, interval: 20 };

/** What happens to an Egress, and what has to be written for it. */
interface Change {
  readonly before: (play: Playground) => Promise<unknown>;
  readonly change: (play: Playground) => Promise<unknown>;
}

const CREATION: Change = {
  before: () => Promise.resolve(),
  change: (play) => play.createEgress("nat", ELABORATE),
};

const SIMPLIFICATION: Change = {
  before: (play) => play.createEgress("nat", ELABORATE),
  change: (play) => play.writeEgress("nat", { destinations: ["::/0"], sessionAffinity: "None", replicas: 3 }),
};

/** What comes of the change when nobody is killed. */
async function undisturbed({ before, change }: Change): Promise<object> {
  using play = await Playground.create(inject("kubeconfig"));
  const { transport, namespace } = play;
  await using _ = RunningOperator.start(confinedTo(namespace, transport), namespace);
  await before(play);
  await caughtUp(play);
  await change(play);
  await caughtUp(play);
  return await outcomeOf(play);
}

/** @returns whether the operator was killed: where it was not, it had fewer writes to do */
async function killedAt(
  write: number,
  death: Death,
  { before, change }: Change,
  expected: object,
): Promise<boolean> {
  using play = await Playground.create(inject("kubeconfig"));
  const { namespace } = play;
  const transport = confinedTo(namespace, play.transport);
  const mortal = new MortalTransport(transport);
  await using killed = RunningOperator.start(mortal, namespace);
  await before(play);
  await caughtUp(play);
  mortal.dieAt(write, death);
  await change(play);
  const isOver = async () => mortal.isDead || isDeepStrictEqual(await outcomeOf(play), expected);
  await expect.poll(isOver, eventually).toBe(true);
  await killed.stop();
  const survivors = await uids(play);

  // It has the same name, as a container that is started again in its pod: the lease is its own.
  await using _ = RunningOperator.start(transport, namespace);
  await expect.poll(() => outcomeOf(play), eventually).toEqual(expected);
  for (const [kind, uid] of await uids(play)) expect(uid).toBe(survivors.get(kind) ?? uid);
  return mortal.isDead;
}

async function uids(play: Playground): Promise<ReadonlyMap<string, string>> {
  const uids = new Map<string, string>();
  for (const [kind, resource] of Object.entries(CHILD_RESOURCES)) {
    for (const { metadata } of await play.list(resource)) uids.set(`${kind} ${metadata.name}`, metadata.uid);
  }
  return uids;
}

describe.each([
  ["makes the children of an Egress", CREATION],
  ["changes and removes children", SIMPLIFICATION],
])("an operator that is killed while it %s", (_, change) => {
  test.each([
    ["before each of its writes", "before"],
    ["after each of its writes, before it learns of it", "after"],
  ] as const)("%s: the next one ends where it would have", async (_, death) => {
    const expected = await undisturbed(change);
    let writes = 0;
    do writes += 1;
    while (await killedAt(writes, death, change, expected));
    expect(writes).toBeGreaterThan(FEWEST_WRITES);
  });
});
