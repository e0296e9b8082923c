import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { Logger } from "./logger.ts";

/** An answer to a probe; `reasons` say what is missing, for the person who reads `kubectl describe pod`. */
export interface Check {
  readonly ok: boolean;
  readonly reasons: readonly string[];
}

export interface HealthServerOptions {
  /** TCP port; 0 takes a free one. */
  readonly port: number;
  /** Address to listen on; every address of both families where it is absent. */
  readonly host?: string;
  readonly logger: Logger;
  readonly registry: Registry;
  /** Alive where it is absent: a process that answers is alive. */
  readonly live?: () => Check;
  readonly ready: () => Check;
}

const ALIVE: Check = { ok: true, reasons: [] };

/** Serves /healthz, /readyz (200 or 503, one reason per line) and /metrics (Prometheus text). */
export class HealthServer {
  readonly #options: HealthServerOptions;
  readonly #server: Server;
  #wasReady: boolean | undefined;

  constructor(options: HealthServerOptions) {
    this.#options = options;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  /** @returns the port it listens on */
  async start(): Promise<number> {
    const { port, host } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#server.once("error", reject).listen({ port, host }, resolve);
    await promise;
    return (this.#server.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { live = () => ALIVE, registry, logger } = this.#options;
    try {
      switch (request.url?.split("?")[0]) {
        case "/healthz":
          return answerCheck(response, live());
        case "/readyz":
          return answerCheck(response, this.#ready());
        case "/metrics": {
          const text = await registry.metrics();
          return void response.writeHead(200, { "content-type": registry.contentType }).end(text);
        }
        default:
          return void response.writeHead(404).end("not found: try /healthz, /readyz or /metrics\n");
      }
    } catch (err) {
      logger.error({ err, url: request.url }, "health endpoint failed");
      response.writeHead(500).end("internal error, see the log\n");
    }
  }

  #ready(): Check {
    const check = this.#options.ready();
    if (check.ok !== this.#wasReady) {
      this.#options.logger.info({ ready: check.ok, reasons: check.reasons }, "readiness changed");
      this.#wasReady = check.ok;
    }
    return check;
  }
}

function answerCheck(response: ServerResponse, check: Check): void {
  const text = check.ok ? "ok" : check.reasons.join("\n");
  response.writeHead(check.ok ? 200 : 503, { "content-type": "text/plain; charset=utf-8" }).end(`${text}\n`);
}
