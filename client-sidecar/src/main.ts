/** Entry of the node agent's image: `serve`, `install-modules` or `uninstall`. */

import { ConfigurationError, type Program, runProgram } from "@egress-nat/program";
import { installModules } from "./node-agent/installer/modules.ts";
import { runUninstall } from "./node-agent/installer/uninstall-program.ts";
import { serve } from "./node-agent/serve.ts";

const PROGRAMS: Readonly<Record<string, Program>> = {
  serve,
  "install-modules": ({ logger }) => installModules(logger),
  uninstall: runUninstall,
};

const name = process.argv[2] ?? "";

await runProgram("node-agent", async (context) => {
  const program = PROGRAMS[name];
  if (program === undefined) {
    throw new ConfigurationError(`no subcommand "${name}": give one of ${Object.keys(PROGRAMS).join(", ")}`);
  }
  await program(context);
});
