import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import { ConnectionBudget } from "./connection-budget.ts";
import type { Logger } from "./logger.ts";

/** An answer to a probe; `reasons` say what is missing, for the person who reads `kubectl describe pod`. */
export interface Check {
  readonly ok: boolean;
  readonly reasons: readonly string[];
}

export interface HealthServerOptions {
  /** TCP port; 0 takes a free one. */
  readonly port: number;
  /** Address to listen on; every address of both families if it is absent. */
  readonly host?: string;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly ready: () => Check;
}

/** Longer than any of the kubelet's probes waits: 15 s. */
const PATIENCE_MS = 20_000;

/** How long a request may take to come. */
const LIMITS = {
  headersTimeout: PATIENCE_MS,
  requestTimeout: PATIENCE_MS,
  connectionsCheckingInterval: 5_000,
};

/** Scrapes are further apart. */
const METRICS_MAX_AGE_MS = 1_000;

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/**
 * Serves /healthz, /readyz (200 or 503, one reason per line) and /metrics (Prometheus text), one request per connection.
 *
 * Whoever reaches the port may ask, so nobody can keep others from it: see {@link ConnectionBudget}. Metrics are
 * gathered once a second at most.
 */
export class HealthServer {
  readonly #options: HealthServerOptions;
  readonly #server: Server;
  readonly #budget = new ConnectionBudget();
  #wasReady: boolean | undefined;
  #metrics: { readonly text: Promise<string>; readonly gatheredAtMs: number } | undefined;

  constructor(options: HealthServerOptions) {
    this.#options = options;
    this.#server = createServer(LIMITS, (request, response) => void this.#serve(request, response));
    // Who does not take the answer in.
    this.#server.timeout = PATIENCE_MS;
    this.#server.on("connection", (socket) => this.#budget.take(socket));
  }

  /** @returns the port it listens on */
  async start(): Promise<number> {
    const { port, host } = this.#options;
    await once(this.#server.listen({ port, host }), "listening");
    // A connection that could not be accepted is the other side's loss.
    this.#server.on("error", (err) => this.#options.logger.warn({ err }, "cannot accept a connection"));
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server.close(), "close");
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { status, contentType, text } = await this.#answer(request.url);
    // Probes and scrapes are seconds apart: a connection that is kept open for the next one is worth nothing.
    response.writeHead(status, { "content-type": contentType, connection: "close" }).end(text);
  }

  async #answer(url = ""): Promise<Answer> {
    const { registry, logger } = this.#options;
    try {
      switch (url.split("?")[0]) {
        case "/healthz":
          return plain(200, "ok"); // a process that answers is alive
        case "/readyz":
          return this.#readiness();
        case "/metrics":
          return { status: 200, contentType: registry.contentType, text: await this.#gatherMetrics() };
        default:
          return plain(404, "not found: try /healthz, /readyz or /metrics");
      }
    } catch (err) {
      logger.error({ err, url }, "health endpoint failed");
      return plain(500, "internal error, see the log");
    }
  }

  #gatherMetrics(): Promise<string> {
    const nowMs = performance.now();
    if (this.#metrics === undefined || nowMs - this.#metrics.gatheredAtMs >= METRICS_MAX_AGE_MS) {
      this.#metrics = { text: this.#options.registry.metrics(), gatheredAtMs: nowMs };
    }
    return this.#metrics.text;
  }

  #readiness(): Answer {
    const { ok, reasons } = this.#options.ready();
    if (ok !== this.#wasReady) {
      this.#options.logger.info({ ready: ok, reasons }, "readiness changed");
      this.#wasReady = ok;
    }
    return ok ? plain(200, "ok") : plain(503, reasons.join("\n"));
  }
}

function plain(status: number, line: string): Answer {
  return { status, contentType: "text/plain; charset=utf-8", text: `${line}\n` };
}
