/** What keeps the plugin from being installed on this node. */
export class InstallError extends Error {
  override readonly name = "InstallError";
  readonly code: "no-configuration" | "unsupported-configuration" | "plugin-missing" | "modules-missing";
  /** The installer tries again when a file changes and once in a while: another program may put it right. */
  readonly retryable = true;

  constructor(code: InstallError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
