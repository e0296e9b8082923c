type Log = (details: object, message: string) => void;

/** Where this workspace writes its log; pino's loggers fit. */
export interface Logger {
  readonly debug: Log;
  readonly info: Log;
  readonly warn: Log;
  readonly error: Log;
}
