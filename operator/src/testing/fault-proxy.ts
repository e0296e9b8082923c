import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Credentials } from "@egress-nat/kube";
import { selfSigned } from "@egress-nat/kube/testing/self-signed";

/** A request as the proxy sees it. */
export interface Asked {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly isWatch: boolean;
  /** The most objects that are asked for; undefined: all. */
  readonly limit: number | undefined;
  /** On the clock of `performance.now()`. */
  readonly at: number;
}

/** What goes wrong with a request. */
export type Fault =
  /** The apiserver refuses, or fails. */
  | { readonly status: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  /** It is not carried out, and nobody answers. */
  | "silence"
  /** It is carried out, and the connection breaks before the answer. */
  | "answer lost";

/** The apiserver as an operator sees it on a bad day: a proxy that understands requests, with a certificate of its own. */
export class FaultProxy implements AsyncDisposable {
  /** Which fault a request meets, if any. */
  faultOf: (asked: Asked) => Fault | undefined = () => undefined;
  readonly asked: Asked[] = [];
  readonly #real: Credentials;
  readonly #server: Server;
  readonly #certificate: string;
  readonly #agent: Agent;
  readonly #watches = new Set<ServerResponse>();

  private constructor(real: Credentials, agent: Agent, { cert, key }: { cert: string; key: string }) {
    this.#real = real;
    this.#agent = agent;
    this.#certificate = cert;
    this.#server = createServer({ cert, key }, (incoming, response) => this.#take(incoming, response));
  }

  static async to(real: Credentials): Promise<FaultProxy> {
    const { tls } = await real.read();
    const proxy = new FaultProxy(real, new Agent({ ...tls, keepAlive: true }), await selfSigned());
    const { promise, resolve } = Promise.withResolvers<void>();
    proxy.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return proxy;
  }

  /** For those who are to go through it; the proxy itself has the rights. */
  get credentials(): Credentials {
    const authentication = { tls: { ca: this.#certificate }, authorization: undefined };
    const { port } = this.#server.address() as AddressInfo;
    return {
      server: new URL(`https://127.0.0.1:${port}`),
      read: () => Promise.resolve(authentication),
      invalidate: () => undefined,
    };
  }

  /** Requests for paths that end so, and are no watches. */
  askedFor(method: string, pathEnd: string): readonly Asked[] {
    return this.asked.filter(
      (asked) => asked.method === method && !asked.isWatch && asked.path.endsWith(pathEnd),
    );
  }

  /** Breaks all watches, also those that nobody has answered, as a load balancer that is replaced does. */
  dropWatches(): void {
    for (const watch of this.#watches) watch.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    this.#server.closeAllConnections();
    await promise;
    this.#agent.destroy();
  }

  #take(incoming: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(incoming.url ?? "/", this.#real.server);
    const isWatch = searchParams.has("watch");
    const asked = {
      method: incoming.method ?? "GET",
      path: pathname,
      isWatch,
      limit: searchParams.has("limit") ? Number(searchParams.get("limit")) : undefined,
      at: performance.now(),
    };
    this.asked.push(asked);
    const fault = this.faultOf(asked);
    if (isWatch) this.#remember(response);
    if (fault === "silence") return;
    if (typeof fault === "object") refuse(response, fault);
    else this.#forward(incoming, response, fault === "answer lost");
  }

  #remember(watch: ServerResponse): void {
    this.#watches.add(watch);
    watch.on("close", () => this.#watches.delete(watch));
  }

  #forward(incoming: IncomingMessage, response: ServerResponse, isLost: boolean): void {
    const { hostname, port } = this.#real.server;
    const { method, url, headers } = incoming;
    const outgoing = request({ agent: this.#agent, hostname, port, method, path: url, headers });
    outgoing.on("response", (answer) => {
      if (isLost) {
        answer.resume().on("end", () => response.destroy());
        return;
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.on("error", () => response.destroy()).on("aborted", () => response.destroy());
    });
    outgoing.on("error", () => response.destroy());
    response.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  }
}

function refuse(response: ServerResponse, fault: Exclude<Fault, string>): void {
  const { status, reason, retryAfterSeconds } = fault;
  const headers = {
    "content-type": "application/json",
    ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
  };
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code: status,
    reason,
    message: "on purpose",
  };
  response.writeHead(status, headers).end(JSON.stringify(body));
}
