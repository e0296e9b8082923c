/** The operator's image: the operator itself, and what the chart's hooks run. */

import { OPERATOR } from "@egress-nat/crds/names";
import { runProgram } from "@egress-nat/program";
import { installationCheck } from "./installation/installation-check.ts";
import { uninstallCheck } from "./installation/uninstall-check.ts";
import { uninstallWait } from "./installation/uninstall-wait.ts";

const EXIT_USAGE = 64;

const [command = "serve"] = process.argv.slice(2);
switch (command) {
  case "serve":
    // What only the operator needs is most of the bundle.
    await runProgram(OPERATOR, (await import("./serve.ts")).serve);
    break;
  case "installation-check":
    await runProgram("egress-nat-installation-check", installationCheck);
    break;
  case "uninstall-check":
    process.exitCode = await uninstallCheck();
    break;
  case "uninstall-wait":
    await runProgram("egress-nat-uninstall-wait", uninstallWait);
    break;
  default:
    console.error("usage: main.js [serve|installation-check|uninstall-check|uninstall-wait]");
    process.exitCode = EXIT_USAGE;
}
