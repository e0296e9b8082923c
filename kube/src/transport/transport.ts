/** The way to the API server, as the rest of this workspace sees it. */

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface RequestOptions {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path of the URL, as `resourcePath` makes it. */
  readonly path: string;
  readonly query?: Query | undefined;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** application/json if it is absent. */
  readonly contentType?: string | undefined;
  /** The representation to ask for; application/json if it is absent. */
  readonly accept?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Time limit for all of it: reading credentials, waiting for a connection, a busy apiserver; 30 s if it is absent. */
  readonly timeoutMs?: number | undefined;
  /** Called right before each time that it is sent. A KubeError that it throws is the result, and nothing is sent. */
  readonly beforeSend?: (() => void) | undefined;
}

export interface StreamOptions extends Pick<RequestOptions, "path" | "query" | "accept" | "signal"> {
  /** Time limit for the beginning of the answer; 30 s if it is absent. */
  readonly timeoutMs?: number | undefined;
  /** The longest silence within the answer. After that it ends with a KubeError Idle. */
  readonly idleTimeoutMs: number;
  /** Whether the connection ends with the answer, instead of being kept for others. */
  readonly isLastOfConnection?: boolean | undefined;
}

export interface Transport {
  /**
   * Sends one request and reads its answer. Where the apiserver asks to come back later (Retry-After), it does so
   * within the time limit.
   *
   * @throws KubeError; the signal's reason when the caller aborted
   */
  request<T>(options: RequestOptions): Promise<T>;
  /**
   * Sends a GET and hands out the body of the answer as it comes. To leave the loop over it closes the connection.
   *
   * @throws KubeError; the signal's reason when the caller aborted. The loop over the result throws the same.
   */
  stream(options: StreamOptions): Promise<AsyncIterable<Buffer>>;
  /** Closes all connections; what is under way fails. */
  close(): void;
}
