import type { Command } from "./step.ts";

/** What one does in Perl, in a process that may do more. */
export interface PerlProgram {
  /** It takes its arguments from the front of @ARGV, or all that are left where it is the last. Nobody else ends the process. */
  readonly text: string;
  readonly args: readonly string[];
  /** Read to its end, so that one program has it at most. */
  readonly input?: string;
  /** Its failure is an answer too. */
  readonly mayFail?: boolean;
}

/** One process for some programs, one after the other: where one fails, none begins any more. None where there are none. */
export function perl(programs: readonly PerlProgram[]): Command[] {
  if (programs.length === 0) return [];
  const text = programs
    .map(({ text, mayFail }) => `${mayFail ? "eval " : ""}{\n${text.trim()}\n};\n`)
    .join("");
  const args = ["-e", text, "--", ...programs.flatMap((program) => program.args)];
  const input = programs.flatMap((program) => program.input ?? []);
  return [{ file: "perl", args, ...(input.length > 0 && { input: input.join("") }) }];
}
