import {
  type DestinationStream,
  destination,
  type Logger,
  pino,
  stdSerializers,
  stdTimeFunctions,
} from "pino";

export type { Logger } from "pino";

/** The environment variable that says how much is in the log. */
export const LOG_LEVEL = "LOG_LEVEL";

export interface LoggerOptions {
  /** Name of the program, in every line. */
  readonly name: string;
  /** trace, debug, info, warn, error, fatal or silent; {@link LOG_LEVEL}, then info, if it is absent. */
  readonly level?: string;
  /** Where lines go; standard error if it is absent, so that standard output stays free for answers. */
  readonly stream?: DestinationStream;
}

/**
 * A logger that writes one JSON object per line.
 *
 * Lines are written synchronously: the last words of a program that dies are the ones worth reading.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { name, level = process.env[LOG_LEVEL] || "info", stream } = options;
  return pino(
    {
      name,
      level: level in pino.levels.values || level === "silent" ? level : "info",
      base: { name },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: errorOf },
    },
    stream ?? destination({ fd: process.stderr.fd, sync: true }),
  );
}

/** What JSON.parse and zod say of data that is not as it should be. */
const OF_DATA: ReadonlySet<string> = new Set(["SyntaxError", "ZodError"]);

/**
 * An error with a code was expected by who throws it, and one of data is nobody's mistake in the code: its message and
 * those of its causes say what it was.
 */
function errorOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const { stack, ...rest } = stdSerializers.err(error);
  return "code" in error || OF_DATA.has(error.name) ? rest : { ...rest, stack };
}
