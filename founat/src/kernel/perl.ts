import type { Command } from "./step.ts";

/** What one does in Perl, in a process that may do more. */
export interface PerlProgram {
  /** It takes its arguments from the front of @ARGV. Only the last one exits before its end where it succeeds. */
  readonly text: string;
  readonly args: readonly string[];
  /** Read to its end, so that one program has it at most. */
  readonly input?: string;
}

/** One process for some programs, one after the other: where one fails, none begins any more. */
export function perl(programs: readonly PerlProgram[]): Command {
  const text = programs.map(({ text }) => `{\n${text.trim()}\n}\n`).join("");
  const args = ["-e", text, "--", ...programs.flatMap((program) => program.args)];
  return { file: "perl", args, input: programs.map(({ input = "" }) => input).join("") };
}
