import type { ForkServer } from "./fork-server.ts";
import { type Kernel, type KernelOptions, kernelThrough } from "./kernel.ts";
import { runProcess } from "./process.ts";

export interface NetnsKernelOptions extends KernelOptions {
  /** For programs that run many commands. Default: each is started by `nsenter`. */
  readonly forkServer?: Pick<ForkServer, "run">;
}

/**
 * A network namespace given by a file, for instance /run/netns/NAME or /proc/PID/ns/net.
 *
 * @param netnsPath the file; needs CAP_SYS_ADMIN (setns(2))
 */
export function kernelInNetns(
  netnsPath: string,
  { forkServer, ...options }: NetnsKernelOptions = {},
): Kernel {
  const enter = [`--net=${netnsPath}`, "--"];
  return kernelThrough(
    (file, args, input) =>
      forkServer === undefined
        ? runProcess("nsenter", [...enter, file, ...args], input, options)
        : forkServer.run(netnsPath, file, args, input),
    options,
  );
}
