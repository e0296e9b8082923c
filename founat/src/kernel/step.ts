/** A command to run: no shell takes part in its arguments. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  /** Text for standard input. */
  readonly input?: string;
  /** Its failure is an answer too: what it has printed by then, mostly nothing. */
  readonly mayFail?: boolean;
  /** It is run only where this sysctl exists, by its path below /proc/sys; elsewhere its output is empty. */
  readonly ifSysctl?: string;
}

/** One process of a program that takes lines on its standard input; none where there are none. */
export function batch(file: string, args: readonly string[], lines: readonly string[]): Command[] {
  return lines.length === 0 ? [] : [{ file, args, input: lines.map((line) => `${line}\n`).join("") }];
}

/** Sysctls to write: path below /proc/sys, with slashes because interface names may hold dots -> value. */
export interface SysctlWrites {
  readonly sysctls: Readonly<Record<string, string>>;
}

/** Sysctls to read; the answer holds a line `path:value` for each that exists. */
interface SysctlReads {
  readonly read: readonly string[];
  /** It is enough to know which ones exist: no process is started for it, and values are empty. */
  readonly presenceOnly?: boolean;
}

/** One step towards the kernel. */
export type Step = Command | SysctlWrites | SysctlReads;
