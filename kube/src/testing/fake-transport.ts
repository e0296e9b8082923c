import { KubeError } from "../error.ts";
import type { RequestOptions, StreamOptions, Transport } from "../transport/transport.ts";

type Answer = (request: StreamOptions) => AsyncIterable<string> | KubeError;

/** A transport whose streams a test has written beforehand; after the last one the apiserver is gone for good. */
export class FakeTransport implements Transport {
  /** The moment that the API is at. */
  static readonly NOW = "1000";
  readonly #answers: Answer[];
  /** What was asked, in words: "list", "list the rest", "watch from 7". */
  readonly asked: string[] = [];
  /** How many times the moment was asked for that the API is at. */
  comparisons = 0;

  constructor(answers: readonly Answer[]) {
    this.#answers = [...answers];
  }

  async request<T>(options: RequestOptions): Promise<T> {
    if (options.method !== "GET" || options.query?.limit !== 1)
      throw new TypeError(`no answer was written for ${options.method} ${options.path}`);
    this.comparisons += 1;
    return { metadata: { resourceVersion: FakeTransport.NOW } } as T;
  }

  async stream(options: StreamOptions): Promise<AsyncIterable<Buffer>> {
    const { watch, resourceVersion, limit, continue: token } = options.query ?? {};
    const list = token ? "list the rest" : limit ? "list" : "list all at once";
    this.asked.push(watch ? `watch from ${resourceVersion}` : list);
    const answer = this.#answers.shift()?.(options) ?? failure("Unreachable");
    if (answer instanceof KubeError) throw answer;
    return encode(answer);
  }

  close(): void {}
}

async function* encode(texts: AsyncIterable<string>): AsyncGenerator<Buffer, void, undefined> {
  for await (const text of texts) yield Buffer.from(text);
}

export function failure(code: string, status?: number, retryAfterMs?: number): KubeError {
  return new KubeError(code, { code, status, retryAfterMs, retryable: true });
}

/** One page of a list. */
export function page(resourceVersion: string, items: readonly object[], token?: string): Answer {
  return async function* () {
    yield JSON.stringify({ metadata: { resourceVersion, continue: token }, items });
  };
}

/** A watch that carries these events and then breaks, or lasts. */
export function watch(events: readonly object[], end: "lasts" | KubeError): Answer {
  return async function* ({ signal }) {
    for (const event of events) yield `${JSON.stringify(event)}\n`;
    if (end !== "lasts") throw end;
    await new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  };
}
