import type { ClientRequest } from "node:http";
import { Agent, request as httpsRequest, type RequestOptions } from "node:https";
import type { TlsOptions } from "./credentials.ts";

/**
 * The first TCP keep-alive probe goes out after this much silence; libuv sends the others a second apart and gives up
 * after ten. A peer that vanished without a word is noticed after some 25 s, on watches too.
 */
const TCP_KEEPALIVE_AFTER_MS = 15_000;

/** Below the 90 s after which the apiserver closes an idle connection: no request is sent into a closing one. */
const IDLE_CONNECTION_MS = 60_000;

/**
 * Keep-alive connections to one apiserver, all made with the same TLS options.
 *
 * Requests wait for their turn here, and not in Node's agent: one that has no socket yet hears neither its time limit nor
 * its caller there (docs/adr/0032-requests-wait-for-their-turn-in-our-queue.md).
 */
export class ConnectionPool {
  readonly #maxRequests: number;
  #requests = 0;
  /** A Set keeps the order of its insertions. */
  readonly #waiting = new Set<() => void>();
  #agent: Agent | undefined;
  #tls: TlsOptions | undefined;

  /** @param maxRequests how many are under way at a time, each on a connection of its own */
  constructor(maxRequests: number) {
    this.#maxRequests = maxRequests;
  }

  /**
   * Begins a request when its turn comes. It has to be ended by who gets it.
   *
   * @param tls where they are new, connections made with the old ones end with the request they carry
   * @param beforeSend called when its turn has come; what it throws keeps the request back
   * @throws the signal's reason, where it was aborted before
   */
  async request(
    tls: TlsOptions,
    options: RequestOptions & { readonly signal: AbortSignal },
    beforeSend?: () => void,
  ): Promise<ClientRequest> {
    await this.#turn(options.signal);
    try {
      beforeSend?.();
      const request = httpsRequest({ ...options, agent: this.#agentFor(tls) });
      return request.once("close", () => this.#leave());
    } catch (error) {
      this.#leave();
      throw error;
    }
  }

  /** Closes connections that carry no request. After one that gave no answer the others deserve no trust either. */
  closeIdle(): void {
    for (const sockets of Object.values(this.#agent?.freeSockets ?? {})) {
      for (const socket of sockets ?? []) socket.destroy();
    }
  }

  close(): void {
    this.#agent?.destroy();
    this.#agent = undefined;
  }

  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#requests < this.#maxRequests) {
      this.#requests += 1;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => {
      this.#waiting.delete(resolve);
      reject(signal.reason);
    };
    this.#waiting.add(resolve);
    signal.addEventListener("abort", abort);
    await promise.finally(() => signal.removeEventListener("abort", abort));
  }

  /** Gives the place to the one who has waited longest. */
  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#requests -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }

  #agentFor(tls: TlsOptions): Agent {
    if (this.#agent && this.#tls === tls) return this.#agent;
    this.closeIdle();
    if (this.#agent) this.#agent.maxFreeSockets = 0;
    this.#tls = tls;
    this.#agent = new Agent({
      ...tls,
      keepAlive: true,
      keepAliveMsecs: TCP_KEEPALIVE_AFTER_MS,
      scheduling: "lifo",
      timeout: IDLE_CONNECTION_MS,
    });
    return this.#agent;
  }
}
