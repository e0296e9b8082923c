import type { Socket } from "node:net";

/** Far below the open files that a process may have (1,024 at least), and far above what probes and scrapes need. */
const MAX_CONNECTIONS = 256;

/**
 * Holds the connections of a server to 256 without refusing any: when there are more, the source that holds the most
 * loses its oldest one. So who opens connections and is silent takes the place of his own earlier ones, never that of
 * the kubelet's or of a scrape, which come from other addresses and are answered at once.
 *
 * A limit that refuses newcomers (`server.maxConnections`) would do the opposite: who came first keeps all others out.
 */
export class ConnectionBudget {
  /** The other side's address of each connection, from the oldest to the newest. */
  readonly #sources = new Map<Socket, string>();

  /** @param socket a connection that was just accepted */
  take(socket: Socket): void {
    this.#sources.set(socket, socket.remoteAddress ?? "");
    socket.once("close", () => this.#sources.delete(socket));
    if (this.#sources.size > MAX_CONNECTIONS) this.#evict();
  }

  #evict(): void {
    const bySource = Map.groupBy(this.#sources.keys(), (socket) => this.#sources.get(socket));
    const [most = []] = [...bySource.values()].sort((a, b) => b.length - a.length);
    const [oldest] = most;
    if (oldest === undefined) return;
    // "close" is only emitted later, after others may have come.
    this.#sources.delete(oldest);
    oldest.destroy();
  }
}
