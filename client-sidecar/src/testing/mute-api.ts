import { CLUSTER_RANGES_CONFIG_MAP, clusterRangesData } from "@egress-nat/crds";
import {
  type KubeObject,
  type RequestOptions,
  retryableError,
  type StreamOptions,
  type Transport,
} from "@egress-nat/kube";
import { egress } from "./egress.ts";

/** An API server with Egress internet/nat that tells what is there when it is asked, and never what has changed. */
export class MuteApi implements Transport {
  /** The slices that are listed. */
  readonly slices: object[] = [];
  /** Those that were applied. */
  readonly applied: unknown[] = [];
  /** Paths that somebody has asked for in vain. */
  readonly refused = new Set<string>();
  #now = 1000;
  #isAway = false;
  #left = new AbortController();

  /** Nobody is answered any more. */
  leave(): void {
    this.#isAway = true;
    this.#left.abort();
  }

  /** It is there again, at an earlier moment. */
  comeBackEarlier(): void {
    this.#isAway = false;
    this.#left = new AbortController();
    this.#now -= 500;
  }

  async request<T>({ method, path, body }: RequestOptions): Promise<T> {
    this.#assertThere(path);
    const own = { resourceVersion: String(this.#now) };
    if (method === "GET") return { metadata: own } as T;
    this.applied.push(body);
    const { metadata, ...rest } = body as KubeObject;
    return { ...rest, metadata: { ...metadata, ...own, uid: "slice", generation: this.applied.length } } as T;
  }

  async stream({ path, query, signal }: StreamOptions): Promise<AsyncIterable<Buffer>> {
    this.#assertThere(path);
    return query?.watch
      ? silence(AbortSignal.any([this.#left.signal, ...(signal ? [signal] : [])]))
      : this.#list(path);
  }

  close(): void {}

  async *#list(path: string): AsyncGenerator<Buffer, void, undefined> {
    const metadata = { resourceVersion: String(this.#now) };
    yield Buffer.from(JSON.stringify({ metadata, items: this.#itemsOf(path) }));
  }

  #itemsOf(path: string): readonly object[] {
    if (path.endsWith("/egresses")) return [egress({ clientStartup: "Immediate" })];
    if (path.endsWith("/egressclientslices")) return this.slices;
    if (!path.endsWith("/configmaps")) return [];
    const metadata = { namespace: "internet", name: CLUSTER_RANGES_CONFIG_MAP, uid: "ranges" };
    return [{ metadata, data: clusterRangesData(["10.96.0.0/16"]) }];
  }

  #assertThere(path: string): void {
    if (!this.#isAway) return;
    this.refused.add(path);
    throw retryableError("Unreachable", "nobody is there");
  }
}

/** Breaks off when a signal is aborted. */
async function* silence(signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
  await new Promise((_, reject) =>
    signal.addEventListener("abort", () => reject(retryableError("Unreachable", "it broke off"))),
  );
}
