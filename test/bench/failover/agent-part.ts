import { setTimeout as sleep } from "node:timers/promises";
import type { Round } from "../../chaos/round.ts";
import { clientNames } from "../native/clients.ts";
import { Flows } from "./flows.ts";
import { answerFor, type Death, WatchingClients } from "./watching-clients.ts";

// `node main.js CLIENTS ROUNDS [LOAD]`: in each round one of three gateways of so many clients dies. With a load program the
// first client has flows. Prints JSON. `node main.js gateway ADDRESS...`: a gateway, until it is killed.

/** New connections that fail later have nothing to do with it. */
const AFTERMATH_MS = 4_000;

if (process.argv[2] === "gateway") await answerFor(process.argv.slice(3));
else {
  const [count, rounds, load] = process.argv.slice(2);
  await measure(Number(count), Number(rounds), load);
}

async function measure(count: number, rounds: number, load: string | undefined): Promise<void> {
  const clients = new WatchingClients(count);
  const deaths: Death[] = [];
  const felt: Round[] = [];
  await clients.during(async () => {
    const [first = ""] = clientNames(count);
    if (load === undefined) await again(async () => void deaths.push(await clients.die()));
    else await Flows.during(first, load, (flows) => again(() => dieWith(flows)));
  });
  console.log(JSON.stringify({ deaths, felt, falseAlarms: clients.falseAlarms }));

  async function again(die: () => Promise<void>): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      await die();
      await clients.revive();
    }
  }

  async function dieWith(flows: Flows): Promise<void> {
    const round = await flows.measure(async (mark) => {
      const death = await clients.die(async () => {
        await mark();
        await flows.cut(clients.marksOfVictim);
      });
      deaths.push(death);
      await sleep(AFTERMATH_MS);
    });
    felt.push(round);
    await flows.mend();
  }
}
