/** Entry of the compiled plugin. */

import { readFileSync, writeFileSync } from "node:fs";
import { runPlugin } from "./plugin.ts";

const STDIN = 0;
const STDOUT = 1;

const { exitCode, stdout } = await runPlugin(process.env, readFileSync(STDIN, "utf8"));
writeFileSync(STDOUT, stdout);
process.exit(exitCode);
