import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { KubeError, refusalError, retryableError } from "../error.ts";
import type { Logger } from "../logger.ts";
import { abortable } from "../timing/abortable.ts";
import { pause } from "../timing/clock.ts";
import { Deadline } from "../timing/deadline.ts";
import { ConnectionPool } from "./connection-pool.ts";
import type { Authentication, Credentials } from "./credentials.ts";
import { parseJson, tryParseJson } from "./json.ts";
import type { Query, RequestOptions, StreamOptions, Transport } from "./transport.ts";

export interface TransportOptions {
  readonly credentials: Credentials;
  readonly logger: Logger;
  /** Value of the header User-Agent: how audit logs and metrics of the apiserver name this program. */
  readonly userAgent?: string | undefined;
  /** Told after each request, for metrics: also of those that are sent again. */
  readonly onRequest?: ((request: SentRequest) => void) | undefined;
}

/** A request that is over, or a stream that has begun. */
export interface SentRequest {
  readonly method: string;
  /** HTTP status; undefined where no answer came. */
  readonly status: number | undefined;
}

/** A transport over HTTP/1.1 with keep-alive connections, which it shares with no other transport. */
export function createTransport(options: TransportOptions): Transport {
  return new HttpsTransport(options);
}

const DEFAULT_TIMEOUT_MS = 30_000;

const JSON_TYPE = "application/json";

/** As in client-go. */
const MAX_ATTEMPTS = 10;

/** A burst of a thousand requests must not become a thousand TLS handshakes. */
const MAX_REQUEST_CONNECTIONS = 16;

type OutgoingRequest = RequestOptions & Pick<StreamOptions, "isLastOfConnection">;

class HttpsTransport implements Transport {
  readonly #options: TransportOptions;
  // Over HTTP/1.1 each watch holds a connection: apart from the others, else many watches would starve them.
  readonly #requests = new ConnectionPool(MAX_REQUEST_CONNECTIONS);
  readonly #streams = new ConnectionPool(Number.POSITIVE_INFINITY);

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  async request<T>(options: RequestOptions): Promise<T> {
    const { method, path, timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options;
    const deadline = new Deadline(timeoutMs, signal);
    try {
      const response = await this.#answerTo(options, this.#requests, deadline);
      const body = await text(response);
      const complaint = () =>
        `${method} ${path}: the answer is not JSON: ${JSON.stringify(body.slice(0, 200))}`;
      return parseJson(body, complaint) as T;
    } catch (error) {
      throw this.#explain(error, options, deadline);
    } finally {
      deadline[Symbol.dispose]();
    }
  }

  async stream(options: StreamOptions): Promise<AsyncIterable<Buffer>> {
    const { timeoutMs = DEFAULT_TIMEOUT_MS, signal } = options;
    const request = { ...options, method: "GET", timeoutMs } as const;
    const deadline = new Deadline(timeoutMs, signal);
    try {
      const response = await this.#answerTo(request, this.#streams, deadline);
      deadline.lift();
      return this.#chunks(response, request, options.idleTimeoutMs, deadline);
    } catch (error) {
      deadline[Symbol.dispose]();
      throw this.#explain(error, request, deadline);
    }
  }

  close(): void {
    this.#requests.close();
    this.#streams.close();
  }

  async *#chunks(
    response: IncomingMessage,
    request: RequestOptions,
    idleTimeoutMs: number,
    deadline: Deadline,
  ): AsyncGenerator<Buffer, void, undefined> {
    const chunks: AsyncIterator<Buffer> = response[Symbol.asyncIterator]();
    try {
      while (true) {
        // Only the wait for the peer counts, not the time that the reader of the stream takes.
        const timer = setTimeout(() => response.destroy(idleError(request, idleTimeoutMs)), idleTimeoutMs);
        const next = await chunks.next().finally(() => clearTimeout(timer));
        if (next.done) return;
        yield next.value;
      }
    } catch (error) {
      throw this.#explain(error, request, deadline);
    } finally {
      response.destroy();
      deadline[Symbol.dispose]();
    }
  }

  /** The answer, once it is a success: sends again where the apiserver is busy or the token was an old one. */
  async #answerTo(
    request: OutgoingRequest,
    pool: ConnectionPool,
    deadline: Deadline,
  ): Promise<IncomingMessage> {
    for (let attempt = 1; ; attempt += 1) {
      const authentication = await abortable(this.#options.credentials.read(), deadline.signal);
      const response = await this.#send(request, authentication, pool, deadline.signal);
      if (isSuccess(response)) return response;

      const error = await refusal(request, response);
      if (attempt >= MAX_ATTEMPTS) throw error;
      if (error.status === 401 && (await this.#hasReplaced(authentication, deadline.signal))) continue;
      const delayMs = waitBeforeRetry(error);
      if (delayMs === undefined || delayMs >= deadline.remainingMs) throw error;
      this.#options.logger.debug(
        { path: request.path, status: error.status, delayMs },
        "apiserver is busy, waiting",
      );
      await pause(delayMs, deadline.signal);
    }
  }

  /** Whether other credentials have taken the place of these since they were read. */
  async #hasReplaced(refused: Authentication, signal: AbortSignal): Promise<boolean> {
    this.#options.credentials.invalidate();
    const current = await abortable(this.#options.credentials.read(), signal);
    return current.authorization !== refused.authorization;
  }

  async #send(
    request: OutgoingRequest,
    authentication: Authentication,
    pool: ConnectionPool,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const { method, path, query, contentType = JSON_TYPE, accept = JSON_TYPE } = request;
    const { server } = this.#options.credentials;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = {
      host: server.hostname.replace(/^\[|\]$/g, ""),
      port: server.port || 443,
      method,
      path: `${server.pathname.replace(/\/$/, "")}${path}${queryString(query)}`,
      headers: {
        accept,
        "user-agent": this.#options.userAgent ?? "egress-nat",
        ...(authentication.authorization && { authorization: authentication.authorization }),
        ...(body && { "content-type": contentType, "content-length": body.length }),
        ...(request.isLastOfConnection && { connection: "close" }),
      },
      signal,
    };
    const outgoing = await pool.request(authentication.tls, options, request.beforeSend);
    outgoing.once("response", resolve).on("error", reject).end(body);
    try {
      const response = await promise;
      this.#options.onRequest?.({ method, status: response.statusCode });
      return response;
    } catch (error) {
      this.#options.onRequest?.({ method, status: undefined });
      // The server may close a kept connection just as a request goes out on it. Only a GET is safe to send twice.
      if (method === "GET" && outgoing.reusedSocket && !signal.aborted) {
        pool.closeIdle();
        return this.#send(request, authentication, pool, signal);
      }
      throw error;
    }
  }

  /** The error to throw for whatever went wrong on the way. */
  #explain(error: unknown, request: RequestOptions, deadline: Deadline): unknown {
    if (request.signal?.aborted) return request.signal.reason;
    if (error instanceof KubeError && error.code !== "Idle") return error;
    // What broke may be the path to the apiserver, or what we know of its certificate.
    this.#requests.closeIdle();
    this.#streams.closeIdle();
    this.#options.credentials.invalidate();
    if (error instanceof KubeError) return error;
    const what = `${request.method} ${this.#options.credentials.server.origin}${request.path}`;
    if (deadline.expired) {
      const timeoutMs = request.timeoutMs ?? DEFAULT_TIMEOUT_MS;
      return retryableError("Timeout", `${what}: no answer within ${timeoutMs} ms`, error);
    }
    const why = error instanceof Error ? error.message || error.name : String(error);
    const message = `${what}: ${why}: is the apiserver up, and may this program reach it?`;
    return retryableError("Unreachable", message, error);
  }
}

function isSuccess(response: IncomingMessage): boolean {
  const status = response.statusCode ?? 0;
  return status >= 200 && status < 300;
}

async function refusal(request: RequestOptions, response: IncomingMessage): Promise<KubeError> {
  const body = await text(response);
  return refusalError({
    request: `${request.method} ${request.path}`,
    status: response.statusCode ?? 0,
    body: tryParseJson(body) ?? body,
    retryAfter: response.headers["retry-after"],
  });
}

/** Any method is sent again where the server asks to wait, as client-go does it: callers bear it that a write was carried out. */
function waitBeforeRetry(error: KubeError): number | undefined {
  const isBusy = error.status === 429 || (error.status ?? 0) >= 500;
  if (!isBusy || error.retryAfterMs === undefined) return undefined;
  // Everyone whom it told "in 1 s" must not come in the same instant.
  return error.retryAfterMs * (1 + Math.random() / 4);
}

function idleError(request: RequestOptions, idleTimeoutMs: number): KubeError {
  const what = `${request.method} ${request.path}`;
  return retryableError("Idle", `${what}: nothing came for ${idleTimeoutMs} ms`);
}

function queryString(query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parameters.set(name, String(value));
  }
  return parameters.size > 0 ? `?${parameters}` : "";
}
