import { renewPodTemplate } from "@egress-nat/crds/generate";
import { Command } from "commander";
import { runCommand } from "../system/run-command.ts";
import { outdatedFiles, writeOutdatedFiles } from "./files.ts";

interface Options {
  readonly check: boolean;
  readonly podTemplate?: string;
}

const program = new Command("npm run generate --")
  .description(
    `Writes crds/crds, the Helm chart's copy of it and docs/api.md, from the zod schemas in crds/src, the plain YAML in \
config/kustomize and the table of values in the chart's README, from the chart, and the tables of docs/cni.md, from the \
cases in test/cni.`,
  )
  .option("--check", "write nothing; fail when a file would change", false)
  .option("--pod-template <openapi>", "also renew the schema of pod templates from that file")
  .addHelpText(
    "after",
    `
The file for --pod-template comes from the newest Kubernetes that is supported:

  kubectl get --raw /openapi/v3/apis/apps/v1 > OPENAPI`,
  )
  .action(async ({ check, podTemplate }: Options) => {
    if (check) return complainOfOutdated();
    if (podTemplate !== undefined) await renewPodTemplate(podTemplate);
    const written = await writeOutdatedFiles();
    console.log(written.map((path) => `wrote ${path}`).join("\n") || "everything is up to date");
  });

await runCommand(program);

async function complainOfOutdated(): Promise<void> {
  const outdated = await outdatedFiles();
  if (outdated.length === 0) return console.log("everything is up to date");
  console.error(`not up to date: ${outdated.map(({ path }) => path).join(", ")}\nrun: npm run generate`);
  process.exitCode = 1;
}
