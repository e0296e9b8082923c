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

/**
 * Runs a program to its end and sets the exit code of the process: 0 when it returned, 78 when its configuration is
 * wrong, 70 when it failed. An error that nobody caught ends the process: state is in the kernel and the API, and a
 * start from there is safer than to go on half-broken.
 *
 * A second SIGTERM or SIGINT ends the process at once.
 */
export async function runProgram(name: string, program: Program): Promise<void> {
  const logger = createLogger({ name });
  const controller = new AbortController();

  const stop = (reason: NodeJS.Signals) => {
    if (controller.signal.aborted) process.exit(128 + (reason === "SIGINT" ? 2 : 15));
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
