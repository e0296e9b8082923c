import { setTimeout as sleep } from "node:timers/promises";
import { progress } from "../progress.ts";
import { type Findings, medianOf, milliseconds } from "../report.ts";
import type { OperatorProgram } from "./operator-process.ts";
import { EGRESSES, type Population } from "./population.ts";
import { answeredBetween, requestsAnswered, writesBetween } from "./requests.ts";

const READY_LIMIT = { atMost: 3000 };
const MEMORY_LIMIT = { atMost: 150 };
const NONE = { atMost: 0 };

const RESTARTS = 5;

/** Longer than what is done every few seconds, or every half minute, takes to show. */
const QUIET_MS = 60_000;

/** New processes, with 1,000 Egresses that are as they should be: what they take, and what they ask and tell the apiserver. */
export async function measureRestart(population: Population, program: OperatorProgram): Promise<Findings> {
  const { transport } = population;
  const ready: number[] = [];
  const memory: number[] = [];
  const before = await requestsAnswered(transport);
  for (let restart = 0; restart < RESTARTS; restart += 1) {
    progress(`restart ${restart + 1} of ${RESTARTS}`);
    await using operator = await program.start();
    ready.push(await operator.ready());
    await operator.hasReconciled(EGRESSES);
    memory.push(await operator.residentSet());
  }
  progress(`${QUIET_MS / 1000} s with nothing to do`);
  await using operator = await program.start();
  await operator.hasReconciled(EGRESSES);
  const settled = await requestsAnswered(transport);
  await sleep(QUIET_MS);
  const after = await requestsAnswered(transport);

  const readySeries = milliseconds("restart with 1,000 Egresses: ready", ready);
  const memorySeries = { name: "restart with 1,000 Egresses: VmRSS", unit: "MB", samples: memory } as const;
  return {
    series: [readySeries, memorySeries],
    targets: [
      medianOf(readySeries, READY_LIMIT),
      medianOf(memorySeries, MEMORY_LIMIT),
      { name: "restarts: writes", value: writesBetween(before, after), limit: NONE },
      {
        name: `${QUIET_MS / 1000} s later: lists`,
        value: answeredBetween(settled, after, ["LIST"]),
        limit: NONE,
      },
    ],
  };
}
