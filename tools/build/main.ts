import { join } from "node:path";
import { Command, Option } from "commander";
import { execa } from "execa";
import prettyMilliseconds from "pretty-ms";
import { runCommand } from "../system/run-command.ts";
import { buildPrograms } from "./index.ts";
import { ARCHITECTURES, type Architecture } from "./quickjs/engine.ts";

const program = new Command("npm run build --")
  .description(
    "Builds type declarations and JavaScript of every workspace, the bundles of the programs and the CNI plugin.",
  )
  .addOption(
    new Option("--architecture <names...>", "processors of the nodes, for the CNI plugin")
      .choices(ARCHITECTURES)
      .default(ARCHITECTURES),
  )
  .action(async ({ architecture }: { architecture: readonly Architecture[] }) => {
    const started = Date.now();
    const types = execa("tsc", ["--build", "--pretty"], {
      cwd: join(import.meta.dirname, "../.."),
      preferLocal: true,
      stdio: "inherit",
      reject: false,
    });
    const built = await buildPrograms(architecture);
    const { exitCode = 1 } = await types;
    process.exitCode = exitCode;
    const outcome =
      exitCode === 0 ? built.join(", ") || "everything was up to date" : "there are type errors";
    console.log(`build: ${outcome} (${prettyMilliseconds(Date.now() - started)})`);
  });

await runCommand(program);
