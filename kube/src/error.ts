import { z } from "zod";

/**
 * What went wrong with the Kubernetes API.
 *
 * `code` is the apiserver's reason (NotFound, AlreadyExists, Conflict, Gone, Invalid, Forbidden, Unauthorized,
 * TooManyRequests, ServiceUnavailable, ServerTimeout, InternalError, ...) or, where it gave none, one of ours:
 * - Unreachable: no connection, or it broke
 * - Timeout: no answer in time
 * - Idle: a stream that should have carried something was silent
 * - InvalidResponse: an answer that is not what the API promises
 * - NotLeading: the lead ended under which a write was to be sent
 * - InvalidCredentials: a token, certificate or kubeconfig that is missing or cannot be read
 */
export class KubeError extends Error {
  readonly code: string;
  /** HTTP status, where there was an answer. */
  readonly status: number | undefined;
  /** Whether the same call may succeed later without a person's help. */
  readonly retryable: boolean;
  /** How long the apiserver asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    details: {
      readonly code: string;
      readonly retryable: boolean;
      readonly status?: number | undefined;
      readonly retryAfterMs?: number | undefined;
      readonly cause?: unknown;
    },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "KubeError";
    this.code = details.code;
    this.status = details.status;
    this.retryable = details.retryable;
    this.retryAfterMs = details.retryAfterMs;
  }
}

export function hasCode(error: unknown, code: string): error is KubeError {
  return error instanceof KubeError && error.code === code;
}

/** @returns what a call returns; undefined where there is no such object, or none any more */
export async function ifFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (!hasCode(error, "NotFound")) throw error;
    return undefined;
  }
}

/** One of our own, after which the same call may succeed. */
export function retryableError(code: string, message: string, cause?: unknown): KubeError {
  return new KubeError(message, { code, retryable: true, cause });
}

/** The apiserver's answer to what it refuses, and the object of a watch's ERROR event. */
const Status = z.object({
  message: z.string().optional(),
  reason: z.string().optional(),
  code: z.number().optional(),
  details: z.object({ retryAfterSeconds: z.number().optional() }).optional(),
});

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  409: "Conflict",
  410: "Gone",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  502: "BadGateway",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** Conflict is among them: who reads again and decides again may succeed. */
const RETRYABLE = new Set([408, 409, 429, 500, 502, 503, 504]);

export interface Refusal {
  /** What was asked, for the message: "GET /api/v1/pods". */
  readonly request: string;
  readonly status: number;
  /** The body of the answer: a Status object in most cases, plain text from a proxy in between. */
  readonly body: unknown;
  /** Value of the header Retry-After. */
  readonly retryAfter?: string | undefined;
}

export function refusalError({ request, status, body, retryAfter }: Refusal): KubeError {
  const parsed = Status.safeParse(body);
  const { message, reason, details } = parsed.success ? parsed.data : {};
  // 410 has the reason Expired on a list and Gone on a watch. Who asks wants to know one thing: list again.
  const code = status === 410 ? "Gone" : reason || REASONS[status] || `Status${status}`;
  const said = message || (typeof body === "string" ? body.trim().slice(0, 500) : "") || code;
  return new KubeError(`${request}: ${status} ${code}: ${said}`, {
    code,
    status,
    retryable: RETRYABLE.has(status) && code !== "AlreadyExists",
    retryAfterMs: retryAfterMs(retryAfter) ?? seconds(details?.retryAfterSeconds),
  });
}

/** RFC 9110 allows a date as well; the apiserver sends whole seconds. */
function retryAfterMs(header: string | undefined): number | undefined {
  if (header === undefined) return undefined;
  const value = Number(header);
  return seconds(Number.isFinite(value) ? value : (Date.parse(header) - Date.now()) / 1000);
}

function seconds(value: number | undefined): number | undefined {
  return value !== undefined && value >= 0 ? value * 1000 : undefined;
}
