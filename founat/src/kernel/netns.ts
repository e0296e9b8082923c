import { arch } from "node:os";
import { type Kernel, type KernelOptions, kernelOfShell, kernelThrough, SHELL } from "./kernel.ts";
import { runProcess } from "./process.ts";
import { openShell } from "./shell.ts";
import type { SpareShell } from "./spare-shell.ts";

/** Numbers of setns(2), by Node's names of processors. */
const NUMBERS: Readonly<Record<string, number>> = { x64: 308, arm64: 268 };

/** The number of setns(2) on this machine: Perl has no name for it. */
export const SETNS = String(NUMBERS[arch()]);

export interface NetnsKernelOptions extends KernelOptions {
  /** For sessions that somebody waits for. */
  readonly spareShell?: Pick<SpareShell, "take">;
}

/**
 * A network namespace given by a file, for instance /run/netns/NAME or /proc/PID/ns/net.
 *
 * @param netnsPath the file; needs CAP_SYS_ADMIN (setns(2))
 */
export function kernelInNetns(netnsPath: string, options: NetnsKernelOptions = {}): Kernel {
  const enter = [`--net=${netnsPath}`, "--"];
  const kernel = kernelThrough(
    (file, args, input) => runProcess("nsenter", [...enter, file, ...args], input, options),
    options,
  );
  return {
    ...kernel,
    session: async (work) => {
      const shell =
        options.spareShell?.take(netnsPath) ?? openShell("nsenter", [...enter, ...SHELL], options);
      try {
        return await work(kernelOfShell(kernel, shell, options));
      } finally {
        shell.close();
      }
    },
  };
}
