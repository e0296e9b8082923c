import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Credentials } from "../transport/credentials.ts";

/** A path to the apiserver that tests can break. It forwards TCP on loopback. */
export class TcpProxy implements AsyncDisposable {
  readonly #target: URL;
  readonly #server: Server;
  readonly #pairs = new Set<{ near: Socket; far: Socket }>();
  #refusing = false;
  /** Connections that were made through it so far. */
  connections = 0;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((near) => this.#forward(near));
  }

  static async to(target: URL): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    const { promise, resolve } = Promise.withResolvers<void>();
    proxy.#server.listen(0, "127.0.0.1", resolve);
    await promise;
    return proxy;
  }

  /** The same credentials, by way of this proxy. */
  reach(credentials: Credentials): Credentials {
    const server = new URL(credentials.server);
    server.port = String((this.#server.address() as AddressInfo).port);
    return { server, read: () => credentials.read(), invalidate: () => credentials.invalidate() };
  }

  /** Open connections stay open and carry nothing any more, as when a host or a NAT entry on the way is gone. */
  freeze(): void {
    for (const { near, far } of this.#pairs) {
      near.unpipe(far).pause();
      far.unpipe(near).pause();
    }
  }

  /** Ends all connections, and all attempts to make one, until {@link restore}. */
  cut(): void {
    this.#refusing = true;
    for (const { near } of this.#pairs) near.destroy();
  }

  restore(): void {
    this.#refusing = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    await promise;
  }

  #forward(near: Socket): void {
    if (this.#refusing) {
      near.destroy();
      return;
    }
    this.connections += 1;
    const far = connect(Number(this.#target.port), this.#target.hostname);
    const pair = { near, far };
    this.#pairs.add(pair);
    const close = () => {
      near.destroy();
      far.destroy();
      this.#pairs.delete(pair);
    };
    for (const socket of [near, far]) socket.on("error", close).on("close", close);
    near.pipe(far);
    far.pipe(near);
  }
}
