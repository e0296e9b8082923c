import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { familyOf } from "@egress-nat/addresses";
import { decodeRequest, encodeResponse } from "./codec.ts";
import { SourceLimit } from "./source-limit.ts";

export interface HeartbeatResponderOptions {
  /** UDP port. 0: any that is free. */
  readonly port: number;
  /** Address to bind; by default all, of both families. */
  readonly host?: string;
  /** The value of a key that a request names. */
  readonly value: (key: string) => string | undefined;
}

/**
 * Answers heartbeats, as many as {@link SourceLimit} admits. It knows no secret: an answer repeats the question's nonce,
 * and is as long as the question.
 */
export class HeartbeatResponder {
  readonly #options: HeartbeatResponderOptions;
  readonly #limit = new SourceLimit();
  #socket: Socket | undefined;

  constructor(options: HeartbeatResponderOptions) {
    this.#options = options;
  }

  /**
   * @returns the port that it listens on
   * @throws the system error (EADDRINUSE and others) when the port cannot be bound
   */
  async listen(): Promise<number> {
    const { port, host } = this.#options;
    const socket = await (host === undefined ? boundToAll(port) : bound(port, host));
    socket.on("message", (datagram, from) => this.#answer(socket, datagram, from));
    // An answer that cannot be sent is an answer that is lost: the prober asks again.
    socket.on("error", () => undefined);
    this.#socket = socket;
    return socket.address().port;
  }

  async close(): Promise<void> {
    const socket = this.#socket;
    this.#socket = undefined;
    if (socket !== undefined) await new Promise<void>((resolve) => socket.close(resolve));
  }

  #answer(socket: Socket, datagram: Uint8Array, { address, port }: RemoteInfo): void {
    // A datagram may come from port 0, which stands for none (RFC 768); to send there throws.
    if (port === 0) return;
    const request = decodeRequest(datagram);
    if (request === undefined || !this.#limit.admits(address, performance.now())) return;
    // Without a callback, because each costs a tick.
    socket.send(encodeResponse(request, this.#options.value), port, address);
  }
}

async function boundToAll(port: number): Promise<Socket> {
  try {
    return await bound(port, "::");
  } catch (error) {
    // A kernel without IPv6.
    if ((error as NodeJS.ErrnoException).code === "EAFNOSUPPORT") return bound(port, "0.0.0.0");
    throw error;
  }
}

async function bound(port: number, host: string): Promise<Socket> {
  const isIPv6 = familyOf(host) === "ipv6";
  const socket = createSocket({
    type: isIPv6 ? "udp6" : "udp4",
    // Only addresses are sent to, and what Node.js does with each by default costs a tick.
    lookup: (address, _options, callback) => callback(null, address, isIPv6 ? 6 : 4),
  });
  const isListening = once(socket, "listening");
  socket.bind(port, host);
  await isListening;
  return socket;
}
