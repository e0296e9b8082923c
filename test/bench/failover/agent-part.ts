import { setTimeout as sleep } from "node:timers/promises";
import type { Round } from "../../chaos/round.ts";
import { clientNames } from "../native/clients.ts";
import { Flows } from "./flows.ts";
import { answerFor, type Death, type Steered, WatchingClients } from "./watching-clients.ts";

// `node main.js CLIENTS ROUNDS [LOAD]`: in each round one of three gateways of so many clients dies, dies again while its pod
// gets other addresses, and then loses its way out. With a load program the first client has flows. Prints JSON.
// `node main.js gateway NAME`: a gateway, until it is killed.

/** New connections that fail later have nothing to do with it. */
const AFTERMATH_MS = 4_000;

if (process.argv[2] === "gateway") await answerFor(process.argv[3] ?? "");
else {
  const [count, rounds, load] = process.argv.slice(2);
  await measure(Number(count), Number(rounds), load);
}

async function measure(count: number, rounds: number, load: string | undefined): Promise<void> {
  const clients = new WatchingClients(count);
  const deaths: Felt<Death>[] = [];
  const moves: Felt<Death>[] = [];
  const losses: Felt<Steered>[] = [];
  await clients.during(async () => {
    const [first = ""] = clientNames(count);
    if (load === undefined) await again(async (harm) => ({ ...(await harm()), felt: undefined }));
    else await Flows.during(first, load, (flows) => again((harm, isFelt) => feltBy(flows, harm, isFelt)));
  });
  console.log(JSON.stringify({ deaths, moves, losses, falseAlarms: clients.falseAlarms }));

  async function again(feel: Feel): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      const death = await feel(
        (cut) => clients.die(cut),
        ({ reset }) => reset > 0,
      );
      deaths.push(death);
      await clients.revive();
      const move = await feel(
        (cut) => clients.dieAndMove(cut),
        ({ reset }) => reset > 0,
      );
      moves.push(move);
      await clients.revive();
      const loss = await feel(
        (cut) => clients.loseUplink(cut),
        ({ failedConnections }) => failedConnections > 0,
      );
      losses.push(loss);
      await clients.regainUplink();
    }
  }

  async function feltBy<T extends Steered>(flows: Flows, harm: Harm<T>, isFelt: IsFelt): Promise<Felt<T>> {
    const [done, felt] = await flows.measure(async (mark) => {
      const done = await harm(async () => {
        await mark();
        await flows.cut(clients.marksOfVictim);
      });
      await sleep(AFTERMATH_MS);
      return done;
    }, isFelt);
    await flows.mend();
    return { ...done, felt };
  }
}

/** With how it was felt by a client that has flows. */
type Felt<T> = T & { readonly felt: Round | undefined };

/** Does it to a gateway. It is given what else is done at that moment. */
type Harm<T> = (cut?: () => Promise<void>) => Promise<T>;

/** Whether that client had flows by the gateway. */
type IsFelt = (round: Round) => boolean;

type Feel = <T extends Steered>(harm: Harm<T>, isFelt: IsFelt) => Promise<Felt<T>>;
