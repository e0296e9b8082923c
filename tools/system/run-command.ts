import type { Command } from "commander";
import { ExecaError } from "execa";
import { ToolError } from "./tool-error.ts";

/**
 * Runs one of the project's commands with the arguments of this process. When it fails, what still runs of it ends with
 * it; of failures that say all there is to say in their message, only that is printed.
 */
export async function runCommand(program: Command): Promise<void> {
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof ToolError || error instanceof ExecaError)) throw error;
    console.error(`error: ${error.message}`);
    process.exit(1);
  }
}
