/** What went wrong, for programs; the message says it to people. */
export type FounatErrorCode =
  /** A configuration that no data path can be made of. Retrying does not help. */
  | "invalid-config"
  /** The network namespace does not forward packets, and this process may not change that. */
  | "forwarding-disabled"
  /** The network namespace drops packets whose way back differs (strict rp_filter). */
  | "strict-reverse-path-filter"
  /** The kernel lacks modules, or the host programs, that {@link GatewayConfig.backend} needs. Retrying does not help. */
  | "backend-unavailable"
  /** The uplink, or an address on it, is not there (yet). */
  | "uplink-missing"
  /** `ip`, `nft`, `conntrack` or a sysctl failed. */
  | "kernel-command-failed"
  /** One of them hung, or did not end to print, and was killed: what it has done by then is not known. */
  | "kernel-command-killed"
  /** A command printed something that this version does not understand. */
  | "unexpected-output";

/** The one class of errors that founat throws. */
export class FounatError extends Error {
  override readonly name = "FounatError";
  readonly code: FounatErrorCode;
  /** Whether the same call may succeed later without a change of its arguments. */
  readonly retryable: boolean;

  constructor(
    code: FounatErrorCode,
    message: string,
    options: { retryable?: boolean; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}
