import type { ClientError, RefusalReason } from "../client/error.ts";

/** Error codes of the CNI specification 1.1, section 5 "Error", and those of this plugin (100 and above). */
export const CniErrorCode = {
  incompatibleVersion: 1,
  unknownContainer: 3,
  invalidEnvironment: 4,
  ioFailure: 5,
  decodingFailure: 6,
  invalidConfiguration: 7,
  tryAgainLater: 11,
  /** STATUS: no ADD would succeed. */
  notAvailable: 50,
  /** The pod asks for something that retrying alone will not give it. */
  invalidPod: 100,
  /** CHECK found the network namespace other than it should be. */
  differs: 101,
} as const;

/** A failure as the container runtime sees it: kubelet shows message and details in an event on the pod. */
export class CniError extends Error {
  override readonly name = "CniError";
  readonly code: number;
  readonly details: string | undefined;

  /**
   * @param code one of {@link CniErrorCode}
   * @param message what is wrong, with which object
   * @param details the likely cause and the remedy
   */
  constructor(code: number, message: string, details?: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
  }
}

/** What was thrown, in its own words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Those that have a code of their own. */
const CODES: Readonly<Partial<Record<RefusalReason, number>>> = {
  "attached-already": CniErrorCode.invalidEnvironment,
  differs: CniErrorCode.differs,
};

/** An error of the core as the container runtime sees it. */
export function cniErrorOf({ code, message, retryable, remedy }: ClientError): CniError {
  return new CniError(
    CODES[code] ?? (retryable ? CniErrorCode.tryAgainLater : CniErrorCode.invalidPod),
    message,
    remedy,
  );
}
