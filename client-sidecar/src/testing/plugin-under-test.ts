/** The plugin's entry with a run directory of its own, so that tests need neither root nor /run. */

import { readFileSync, writeFileSync } from "node:fs";
import { runPlugin } from "../cni/plugin.ts";

const { exitCode, stdout } = await runPlugin(process.env, readFileSync(0, "utf8"), process.env.RUN_DIRECTORY);
writeFileSync(1, stdout);
process.exit(exitCode);
