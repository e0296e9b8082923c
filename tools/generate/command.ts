import { renewPodTemplate } from "@egress-nat/crds/generate";
import { Command } from "commander";
import { type Generator, outdatedFiles, writeOutdatedFiles } from "./files.ts";

interface Options {
  readonly check: boolean;
  readonly podTemplate?: string;
}

/** The command `npm run generate`, without its description. */
export function generateCommand(generators: readonly Generator[]): Command {
  return new Command("npm run generate --")
    .option("--check", "write nothing; fail when a file would change", false)
    .option("--pod-template <openapi>", "also renew the schema of pod templates from that file")
    .addHelpText(
      "after",
      `
The file for --pod-template comes from the newest Kubernetes that is supported:

  kubectl get --raw /openapi/v3/apis/apps/v1 > OPENAPI`,
    )
    .action(async ({ check, podTemplate }: Options) => {
      if (check) return complainOfOutdated(generators);
      if (podTemplate !== undefined) await renewPodTemplate(podTemplate);
      const written = await writeOutdatedFiles(generators);
      console.log(written.map((path) => `wrote ${path}`).join("\n") || "everything is up to date");
    });
}

async function complainOfOutdated(generators: readonly Generator[]): Promise<void> {
  const outdated = await outdatedFiles(generators);
  if (outdated.length === 0) return console.log("everything is up to date");
  console.error(`not up to date: ${outdated.map(({ path }) => path).join(", ")}\nrun: npm run generate`);
  process.exitCode = 1;
}
