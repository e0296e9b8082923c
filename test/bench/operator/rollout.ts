import type { Egress } from "@egress-nat/crds";
import { type RequestOptions, resourcePath } from "@egress-nat/kube";
import { CHILD_RESOURCES, desiredChildren, type GatewaySettings } from "@egress-nat/operator";
import { inParallel } from "../in-parallel.ts";
import { progress } from "../progress.ts";
import { type Findings, ratioOfPairs, type Series } from "../report.ts";
import { interleave, type Samples } from "../samples.ts";
import type { OperatorProgram } from "./operator-process.ts";
import { BY_HAND, CHILDREN, CONCURRENCY, EGRESSES, NAMESPACE, type Population } from "./population.ts";

const LIMIT = { atLeast: 0.7 };

const OBJECTS = EGRESSES * CHILDREN.length;

/** What it took to make all children, in seconds. */
interface Cost {
  readonly wallSeconds: number;
  /** Processor time of the program that made them; the apiserver's is not in it. */
  readonly cpuSeconds: number;
}

/**
 * All children of 1,000 Egresses, from nothing, beside a plain loop that creates the same objects. The operator's time
 * is that of its process, from the start of it to the last status. Both find an apiserver without children: what a
 * Service costs grows with those that are there.
 */
export async function measureRollout(
  rounds: number,
  population: Population,
  program: OperatorProgram,
  settings: GatewaySettings,
): Promise<Findings> {
  const costs: { readonly loop: Cost[]; readonly operator: Cost[] } = { loop: [], operator: [] };
  const taken = (by: Cost[], cost: Cost) => {
    by.push(cost);
    return OBJECTS / cost.wallSeconds;
  };
  const samples = await interleave(rounds, {
    loop: async () => taken(costs.loop, await byLoop(population, settings)),
    operator: async () => taken(costs.operator, await byOperator(population, program)),
  });
  const operator = perSecond("operator, children from nothing", samples.operator);
  const loop = perSecond("plain loop, the same objects", samples.loop);
  const operatorCpu = perSecond("operator, per second of its processor time", perCpuSecond(costs.operator));
  const loopCpu = perSecond("plain loop, the same", perCpuSecond(costs.loop));
  return {
    series: [operator, loop, operatorCpu, loopCpu],
    targets: [
      ratioOfPairs("children: operator / plain loop", operator, loop, LIMIT),
      ratioOfPairs("children: the same by processor time", operatorCpu, loopCpu, LIMIT),
    ],
  };
}

function perCpuSecond(costs: readonly Cost[]): Samples {
  return costs.map(({ cpuSeconds }) => OBJECTS / cpuSeconds);
}

function perSecond(name: string, samples: Samples): Series {
  return { name, unit: "per s", samples };
}

/** On Egresses that no operator has seen yet. */
async function byLoop(population: Population, settings: GatewaySettings): Promise<Cost> {
  progress(`${EGRESSES} Egresses are made`);
  await population.removeEgresses();
  await population.create();
  const { items: egresses } = await population.egresses.list({ namespace: NAMESPACE });
  progress("a plain loop makes their children");
  const creations = egresses.flatMap((egress) => creationsFor(egress, settings));
  const startedAt = performance.now();
  const before = process.cpuUsage();
  await inParallel(CONCURRENCY, creations, (creation) => population.transport.request(creation));
  const { user, system } = process.cpuUsage(before);
  const wallSeconds = (performance.now() - startedAt) / 1000;
  await expectChildren(population, BY_HAND);
  await population.removeChildren(BY_HAND);
  return { wallSeconds, cpuSeconds: (user + system) / 1e6 };
}

function creationsFor(egress: Egress, settings: GatewaySettings): RequestOptions[] {
  const metadata = { ...egress.metadata, namespace: BY_HAND };
  const children = desiredChildren({ ...egress, metadata }, settings);
  return CHILDREN.map((child) => ({
    method: "POST",
    path: resourcePath(CHILD_RESOURCES[child], { namespace: BY_HAND }),
    body: children[child],
  }));
}

/** On the same Egresses, which stay in sync. */
async function byOperator(population: Population, program: OperatorProgram): Promise<Cost> {
  progress("the operator makes their children");
  await using operator = await program.start();
  await operator.until("the statuses of all Egresses", () => population.isSettled);
  const wallSeconds = (performance.now() - operator.startedAt) / 1000;
  const cpuSeconds = await operator.cpuSeconds();
  await expectChildren(population, NAMESPACE);
  return { wallSeconds, cpuSeconds };
}

async function expectChildren(population: Population, namespace: string): Promise<void> {
  const children = await population.children(namespace);
  if (children !== OBJECTS) throw new Error(`${children} objects were made in ${namespace}, not ${OBJECTS}`);
}
