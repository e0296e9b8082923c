import { join } from "node:path";
import { Argument, program } from "commander";
import type { Plan, Stage, StageContext } from "./stage.ts";
import { NIGHTLY_STAGES, STAGES } from "./stages.ts";
import { type StageResult, summary } from "./summary.ts";
import { failure, type Tally } from "./tally.ts";

const ROOT = join(import.meta.dirname, "../..");

const ALL_STAGES = [...STAGES, ...NIGHTLY_STAGES].flat();

const EVERY_STAGE = "all";
const NIGHTLY = "nightly";

program
  .name("npm test --")
  .description(`Runs the test suite, or one stage of it.

Steps run one after the other, the stages of a step side by side.

Stages of npm test:
${listOf(STAGES)}

Stages of npm run test:nightly:
${listOf(NIGHTLY_STAGES)}`)
  .addArgument(
    new Argument("[stage]", "one stage, or all of npm test, or nightly")
      .choices([EVERY_STAGE, NIGHTLY, ...ALL_STAGES.map(({ name }) => name)])
      .default(EVERY_STAGE),
  )
  .argument("[filters...]", "parts of test file names: only these files run")
  .option("--fix", "lint: fix what can be fixed, and rewrite the generated files", false)
  .addHelpText(
    "after",
    `
Environment:
  E2E_KUBECONFIG    run the e2e stage against this cluster, in which the chart must be installed; E2E_IMAGE must
                    name an image for test pods that its nodes can get (bash, python3, socat, iproute2, nftables,
                    conntrack, sysctl, nsenter); tests that need the test cluster's own internet or uninstall
                    the chart are skipped and say so
  E2E_CLUSTER       run the e2e stage on this cluster of npm run cluster, which is brought up if needed and stays
                    up; install-uninstall, which nightly stages run too, removes the product
  E2E_SELECTION     gatewaySelection of the e2e stage's Egresses, Service (the default) or Agent

Examples:
  npm run test:unit -- founat
  npm run test:e2e -- opt-in client-guard
  npm test -- e2e-iptables
  npm run lint -- --fix`,
  )
  .action(async (stage: string, filters: readonly string[], options: { fix: boolean }) => {
    const plan = planNamed(stage);
    const results = await runPlan(plan, filters, options.fix);
    console.log(`\n${summary(results)}`);
    const complete = results.length === plan.flat().length;
    process.exitCode = complete && results.every(({ tally }) => tally.failures.length === 0) ? 0 : 1;
  });

await program.parseAsync();

function listOf(plan: Plan): string {
  return plan
    .flatMap((stages, index) =>
      stages.map(({ name, summary }) => `  step ${index + 1}  ${name.padEnd(14)}${summary}`),
    )
    .join("\n");
}

function planNamed(name: string): Plan {
  if (name === EVERY_STAGE) return STAGES;
  if (name === NIGHTLY) return NIGHTLY_STAGES;
  return [ALL_STAGES.filter((stage) => stage.name === name)];
}

/** Runs every stage, those after a failed one too: one run tells all that is broken. */
async function runPlan(plan: Plan, filters: readonly string[], fix: boolean): Promise<StageResult[]> {
  const abort = new AbortController();
  // Not once: a Ctrl-C arrives twice, from the terminal and from npm, and the second must not break off the cleaning up.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => abort.abort());
  const results: StageResult[] = [];
  for (const [index, stages] of plan.entries()) {
    if (abort.signal.aborted) break;
    for (const { name, summary } of stages) {
      console.log(`\n[${index + 1}/${plan.length}] ${name}: ${summary}`);
    }
    const amongOthers = stages.length > 1;
    const context = { root: ROOT, signal: abort.signal, filters, fix, amongOthers };
    results.push(...(await Promise.all(stages.map((stage) => runStage(stage, context)))));
  }
  return results;
}

async function runStage({ name, run }: Stage, context: StageContext): Promise<StageResult> {
  const startedAt = performance.now();
  const tally = await run(context).catch((error: unknown): Tally => {
    console.error(`${name} broke off:`, error);
    return failure(`it broke off: ${error}`);
  });
  return { name, tally, elapsedMs: performance.now() - startedAt };
}
