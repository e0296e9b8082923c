/** The plugin's entry with a folder of its own for the node's state, so that tests need no root. */

import { readFileSync, writeFileSync } from "node:fs";
import { runPlugin } from "../cni/plugin.ts";
import { locationsIn } from "./locations.ts";

const { exitCode, stdout } = await runPlugin(
  process.env,
  readFileSync(0, "utf8"),
  locationsIn(process.env.FOLDER ?? ""),
);
writeFileSync(1, stdout);
process.exit(exitCode);
