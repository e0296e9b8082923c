import type { ClientError, RefusalReason } from "../client/error.ts";
import { CniError, CniErrorCode } from "./error.ts";

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
