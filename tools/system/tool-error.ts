/** What a tool or the test bed cannot do: the message names the object, what is wrong with it, and the remedy. */
export class ToolError extends Error {
  override readonly name = "ToolError";
  readonly code: string;
  /** True when the same call may succeed later without anybody changing anything. */
  readonly retryable: boolean;

  constructor(code: string, message: string, options: { retryable?: boolean; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}
