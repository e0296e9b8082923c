import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Argument, program } from "commander";
import { NIGHTLY_STAGES, STAGES, type Stage, type StageContext } from "./stages.ts";
import { type StageResult, summary } from "./summary.ts";
import type { Tally } from "./tally.ts";

const ROOT = join(import.meta.dirname, "../..");

const ALL_STAGES = [...STAGES, ...NIGHTLY_STAGES];

const EVERY_STAGE = "all";
const NIGHTLY = "nightly";

program
  .name("npm test")
  .description(`Runs the test suite, or one stage of it.

Stages of npm test, in order:
${STAGES.map(({ name, summary }) => `  ${name.padEnd(14)}${summary}`).join("\n")}

Stages of npm run test:nightly:
${NIGHTLY_STAGES.map(({ name, summary }) => `  ${name.padEnd(14)}${summary}`).join("\n")}`)
  .addArgument(
    new Argument("[stage]", "one stage, or all of npm test, or nightly")
      .choices([EVERY_STAGE, NIGHTLY, ...ALL_STAGES.map(({ name }) => name)])
      .default(EVERY_STAGE),
  )
  .argument("[filters...]", "parts of test file names: only these files run")
  .option("--fix", "lint: repair what can be repaired, write the generated files anew", false)
  .addHelpText(
    "after",
    `
Environment:
  E2E_KUBECONFIG    run the e2e stage against this cluster, where the chart is installed already; E2E_IMAGE names an
                    image for test pods that its nodes can get (bash, python3, socat, iproute2, nftables,
                    conntrack, sysctl, nsenter); cases that need the test cluster's own internet or uninstall
                    the chart are skipped and say so
  E2E_CLUSTER       run the e2e stage on this cluster of npm run cluster, which is brought up if needed, and leave
                    the cluster up; a run of all files uninstalls the product at its end

Examples:
  npm run test:unit -- founat
  npm run test:e2e -- opt-in client-guard
  npm test -- e2e-iptables
  npm run lint -- --fix`,
  )
  .action(async (stage: string, filters: readonly string[], options: { fix: boolean }) => {
    const stages = stagesNamed(stage);
    const results = await runStages(stages, filters, options.fix);
    console.log(`\n${summary(results)}`);
    const complete = results.length === stages.length;
    process.exitCode = complete && results.every(({ tally }) => tally.failed === 0) ? 0 : 1;
  });

await program.parseAsync();

function stagesNamed(name: string): readonly Stage[] {
  if (name === EVERY_STAGE) return STAGES;
  if (name === NIGHTLY) return NIGHTLY_STAGES;
  return ALL_STAGES.filter((stage) => stage.name === name);
}

/** Runs every stage, those after a failed one too: one run tells all that is broken. */
async function runStages(
  stages: readonly Stage[],
  filters: readonly string[],
  fix: boolean,
): Promise<StageResult[]> {
  const abort = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => abort.abort());
  const scratch = await mkdtemp(join(tmpdir(), "egress-nat-test-"));
  const results: StageResult[] = [];
  try {
    for (const [index, stage] of stages.entries()) {
      if (abort.signal.aborted) break;
      console.log(`\n[${index + 1}/${stages.length}] ${stage.name}: ${stage.summary}`);
      const startedAt = performance.now();
      const tally = await runStage(stage, { root: ROOT, scratch, signal: abort.signal, filters, fix });
      results.push({ name: stage.name, tally, elapsedMs: performance.now() - startedAt });
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return results;
}

async function runStage(stage: Stage, context: StageContext): Promise<Tally> {
  try {
    return await stage.run(context);
  } catch (error) {
    console.error(`${stage.name} broke off:`, error);
    return { passed: 0, failed: 1, skipped: 0 };
  }
}
