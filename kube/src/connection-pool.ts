import { Agent } from "node:https";
import type { TlsOptions } from "./credentials.ts";

/**
 * The first TCP keep-alive probe goes out after this much silence; libuv sends the others a second apart and gives up
 * after ten. A peer that vanished without a word is noticed after some 25 s, on watches too.
 */
const TCP_KEEPALIVE_AFTER_MS = 15_000;

/** Below the 90 s after which the apiserver closes an idle connection: no request is sent into a closing one. */
const IDLE_CONNECTION_MS = 60_000;

/** Keep-alive connections to one apiserver, all made with the same TLS options. */
export class ConnectionPool {
  readonly #maxConnections: number;
  #agent: Agent | undefined;
  #tls: TlsOptions | undefined;

  constructor(maxConnections: number) {
    this.#maxConnections = maxConnections;
  }

  /**
   * The agent for requests made from now on. Where the TLS options are new, connections made with the old ones end
   * with the request they carry.
   */
  agentFor(tls: TlsOptions): Agent {
    if (this.#agent && this.#tls === tls) return this.#agent;
    this.#retire();
    this.#tls = tls;
    this.#agent = new Agent({
      ...tls,
      keepAlive: true,
      keepAliveMsecs: TCP_KEEPALIVE_AFTER_MS,
      maxSockets: this.#maxConnections,
      scheduling: "lifo",
      timeout: IDLE_CONNECTION_MS,
    });
    return this.#agent;
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

  #retire(): void {
    this.closeIdle();
    if (this.#agent) this.#agent.maxFreeSockets = 0;
  }
}
