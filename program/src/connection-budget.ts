import type { Socket } from "node:net";

/** Far below the open files that a process may have (1,024 at least), and far above what probes and scrapes need. */
const MAX_CONNECTIONS = 256;

interface Connection {
  readonly socket: Socket;
  /** The other side's address. */
  readonly source: string;
}

/**
 * Holds the connections of a server to 256 without refusing any: when there are more, the source that holds the most
 * loses its oldest one. So who opens connections and is silent takes the place of his own earlier ones, never that of
 * the kubelet's or of a scrape, which come from other addresses and are answered at once.
 *
 * A limit that refuses newcomers (`server.maxConnections`) would do the opposite: who came first keeps all others out.
 */
export class ConnectionBudget {
  /** From the oldest to the newest. */
  readonly #connections = new Set<Connection>();
  readonly #held = new Map<string, number>();

  /** @param socket a connection that was just accepted */
  take(socket: Socket): void {
    const connection = { socket, source: socket.remoteAddress ?? "" };
    this.#connections.add(connection);
    this.#count(connection, +1);
    socket.once("close", () => this.#release(connection));
    if (this.#connections.size > MAX_CONNECTIONS) this.#evict();
  }

  #evict(): void {
    const most = Math.max(...this.#held.values());
    for (const connection of this.#connections) {
      if (this.#held.get(connection.source) !== most) continue;
      // "close" is only emitted later, after others may have come.
      this.#release(connection);
      connection.socket.destroy();
      return;
    }
  }

  #release(connection: Connection): void {
    if (this.#connections.delete(connection)) this.#count(connection, -1);
  }

  #count({ source }: Connection, change: number): void {
    const held = (this.#held.get(source) ?? 0) + change;
    if (held === 0) this.#held.delete(source);
    else this.#held.set(source, held);
  }
}
