import { setTimeout as sleep } from "node:timers/promises";
import type { Round } from "../../chaos/round.ts";
import { clientNames } from "../native/clients.ts";
import { Flows } from "./flows.ts";
import { answerFor, type Death, type Steered, WatchingClients } from "./watching-clients.ts";

// `node main.js CLIENTS ROUNDS [LOAD]`: in each round one of three gateways of so many clients dies, and then loses its way
// out. With a load program the first client has flows. Prints JSON. `node main.js gateway NAME`: a gateway, until it is killed.

/** New connections that fail later have nothing to do with it. */
const AFTERMATH_MS = 4_000;

if (process.argv[2] === "gateway") await answerFor(process.argv[3] ?? "");
else {
  const [count, rounds, load] = process.argv.slice(2);
  await measure(Number(count), Number(rounds), load);
}

async function measure(count: number, rounds: number, load: string | undefined): Promise<void> {
  const clients = new WatchingClients(count);
  const deaths: (Death & { felt: Round | undefined })[] = [];
  const losses: (Steered & { felt: Round | undefined })[] = [];
  await clients.during(async () => {
    const [first = ""] = clientNames(count);
    if (load === undefined) await again(async (harm) => [await harm()]);
    else await Flows.during(first, load, (flows) => again((harm) => feltBy(flows, harm)));
  });
  console.log(JSON.stringify({ deaths, losses, falseAlarms: clients.falseAlarms }));

  async function again(feel: <T>(harm: Harm<T>) => Promise<Felt<T>>): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      const [death, deathFelt] = await feel((cut) => clients.die(cut));
      deaths.push({ ...death, felt: deathFelt });
      await clients.revive();
      const [loss, lossFelt] = await feel((cut) => clients.loseUplink(cut));
      losses.push({ ...loss, felt: lossFelt });
      await clients.regainUplink();
    }
  }

  async function feltBy<T>(flows: Flows, harm: Harm<T>): Promise<Felt<T>> {
    const felt = await flows.measure(async (mark) => {
      const done = await harm(async () => {
        await mark();
        await flows.cut(clients.marksOfVictim);
      });
      await sleep(AFTERMATH_MS);
      return done;
    });
    await flows.mend();
    return felt;
  }
}

/** Does it to a gateway. It is given what else is done at that moment. */
type Harm<T> = (cut?: () => Promise<void>) => Promise<T>;

/** What it comes to, and how a client with flows has felt it. */
type Felt<T> = readonly [T, Round?];
