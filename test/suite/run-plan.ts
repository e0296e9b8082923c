import type { Plan, Stage, StageContext } from "./stage.ts";
import type { StageResult } from "./summary.ts";
import { failure, type Tally } from "./tally.ts";

/**
 * Runs every stage, those after a failed one too: one run tells all that is broken.
 *
 * @returns what came of the stages that were begun, in the plan's order
 */
export async function runPlan(
  plan: Plan,
  given: Omit<StageContext, "amongOthers">,
): Promise<readonly StageResult[]> {
  const begun: Promise<StageResult>[] = [];
  for (const [index, stages] of plan.entries()) {
    if (given.signal.aborted) break;
    for (const { name, summary } of stages) {
      console.log(`\n[${index + 1}/${plan.length}] ${name}: ${summary}`);
    }
    const context = { ...given, amongOthers: plan.flat().length > 1 };
    const running = stages.map((stage) => ({ stage, result: runStage(stage, context) }));
    begun.push(...running.map(({ result }) => result));
    await Promise.all(running.filter(({ stage }) => !stage.outlastsStep).map(({ result }) => result));
  }
  return Promise.all(begun);
}

async function runStage({ name, run }: Stage, context: StageContext): Promise<StageResult> {
  const startedAt = performance.now();
  const tally = await run(context).catch((error: unknown): Tally => {
    console.error(`${name} broke off:`, error);
    return failure(`it broke off: ${error}`);
  });
  return { name, tally, elapsedMs: performance.now() - startedAt };
}
