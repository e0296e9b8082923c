import { join } from "node:path";
import { Command } from "commander";
import { execa } from "execa";
import { runCommand } from "../system/run-command.ts";
import { buildPrograms } from "./index.ts";
import { ARCHITECTURES } from "./quickjs/engine.ts";

const program = new Command("npm run build --")
  .description(
    "Builds type declarations and JavaScript of every workspace, the bundles of the programs and the CNI plugin for amd64 and arm64.",
  )
  .action(async () => {
    const started = Date.now();
    const types = execa("tsc", ["--build", "--pretty"], {
      cwd: join(import.meta.dirname, "../.."),
      preferLocal: true,
      stdio: "inherit",
      reject: false,
    });
    const built = await buildPrograms(ARCHITECTURES);
    const { exitCode = 1 } = await types;
    process.exitCode = exitCode;
    const outcome =
      exitCode === 0 ? built.join(", ") || "everything was up to date" : "there are type errors";
    console.log(`build: ${outcome} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  });

await runCommand(program);
