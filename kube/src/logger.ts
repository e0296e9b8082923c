type Log = (details: object, message: string) => void;

/** Where this workspace writes its log; pino's loggers fit. */
export interface Logger {
  readonly debug: Log;
  readonly info: Log;
  readonly warn: Log;
  readonly error: Log;
}

/** A logger that makes others, all of whose lines have the same details. */
export interface ParentLogger extends Logger {
  child(details: object): Logger;
}
