import { join } from "node:path";
import { execa } from "execa";
import { buildPrograms } from "./index.ts";

// npm run build: type declarations and JavaScript of every workspace, the bundles of the programs, the CNI plugin.
const started = Date.now();
const types = execa("tsc", ["--build", "--pretty"], {
  cwd: join(import.meta.dirname, "../.."),
  preferLocal: true,
  stdio: "inherit",
  reject: false,
});
const built = await buildPrograms();
const { exitCode = 1 } = await types;
process.exitCode = exitCode;
const outcome = exitCode === 0 ? built.join(", ") || "everything was up to date" : "there are type errors";
console.log(`build: ${outcome} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
