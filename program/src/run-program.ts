import { ConfigurationError } from "./environment.ts";
import { createLogger, type Logger } from "./logger.ts";

export interface ProgramContext {
  /** Aborted by SIGTERM and SIGINT. The program then finishes what it has begun and returns. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

export type Program = (context: ProgramContext) => Promise<void>;

/** As sysexits(3): EX_CONFIG, EX_SOFTWARE. Distinct, so that a look at the pod's last state tells which. */
const EXIT_CONFIGURATION = 78;
const EXIT_SOFTWARE = 70;
/** 128 and the number of SIGINT, as shells say it. */
const EXIT_INTERRUPTED = 130;

/**
 * Runs a program to its end and sets the exit code of the process: 0 when it returned, 78 when its configuration is
 * wrong, 70 when it failed. An error that nobody caught ends the process: state is in the kernel and the API, and a
 * start from there is safer than to go on half-broken.
 *
 * A second SIGINT ends the process at once. A second SIGTERM does not: a container runtime that was restarted sends it
 * again, and who wants no more patience has SIGKILL.
 */
export async function runProgram(name: string, program: Program): Promise<void> {
  const logger = createLogger({ name });
  const controller = new AbortController();

  const stop = (reason: NodeJS.Signals) => {
    if (controller.signal.aborted) {
      if (reason === "SIGINT") process.exit(EXIT_INTERRUPTED);
      return;
    }
    logger.info({ signal: reason }, "stopping");
    controller.abort(new DOMException(`stopped by ${reason}`, "AbortError"));
  };
  const crash = (err: unknown) => {
    logger.fatal({ err }, "uncaught error");
    process.exit(EXIT_SOFTWARE);
  };
  process
    .on("SIGTERM", stop)
    .on("SIGINT", stop)
    .on("uncaughtException", crash)
    .on("unhandledRejection", crash);

  try {
    logger.info({ pid: process.pid, node: process.version }, "starting");
    await program({ signal: controller.signal, logger });
    logger.info("stopped");
    process.exitCode = 0;
  } catch (err) {
    process.exitCode = exitCodeOf(err, controller.signal, logger);
  }
  // What a library left running (a keep-alive socket, a timer) must not hold up the end of a pod.
  process.exit();
}

function exitCodeOf(err: unknown, signal: AbortSignal, logger: Logger): number {
  if (signal.aborted && err === signal.reason) {
    logger.info("stopped");
    return 0;
  }
  if (err instanceof ConfigurationError) {
    logger.fatal(err.message);
    return EXIT_CONFIGURATION;
  }
  logger.fatal({ err }, "failed");
  return EXIT_SOFTWARE;
}
