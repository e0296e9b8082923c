import { randomBytes } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { familyOf } from "@egress-nat/addresses";
import { decodeResponse, encodeRequest, groupKeys, NONCE_BYTES, type Response } from "./codec.ts";

export interface ProbeOptions {
  /** How long to wait for all answers. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Of the event loop, in each of which it reads 32 datagrams: with the answers of more gateways others keep coming. */
const MAX_TURNS = 64;

/** Asks gateways whether they live, and for the values of keys. */
export class HeartbeatProber {
  readonly #sockets = new Map<"udp4" | "udp6", Promise<Socket>>();
  readonly #pending = new Map<string, (response: Response) => void>();
  /** How many datagrams have come. */
  #received = 0;

  /**
   * Sends one request (several datagrams where the keys need them) and waits for the answer. Nothing is sent twice:
   * who asks regularly asks again anyway.
   *
   * @param address the gateway's
   * @param keys may be empty: then only its life is asked for
   * @returns the values that the gateway has; undefined when it did not answer in time or the signal was aborted
   */
  async probe(
    address: string,
    port: number,
    keys: Iterable<string>,
    options: ProbeOptions,
  ): Promise<Map<string, string> | undefined> {
    const socket = await this.#socket(familyOf(address) === "ipv6" ? "udp6" : "udp4");
    const responses = await Promise.all(
      groupKeys(keys).map((group) => this.#ask(socket, address, port, group, options)),
    );
    const values = new Map<string, string>();
    for (const response of responses) {
      if (response === undefined) return undefined;
      for (const [key, value] of response.values) values.set(key, value);
    }
    return values;
  }

  async close(): Promise<void> {
    const sockets = await Promise.all(this.#sockets.values());
    this.#sockets.clear();
    await Promise.all(sockets.map((socket) => new Promise<void>((resolve) => socket.close(resolve))));
  }

  #ask(
    socket: Socket,
    address: string,
    port: number,
    keys: readonly string[],
    { timeoutMs, signal }: ProbeOptions,
  ): Promise<Response | undefined> {
    const nonce = randomBytes(NONCE_BYTES);
    const id = nonce.toString("hex");
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve(undefined);
      const settle = (response: Response | undefined) => {
        this.#pending.delete(id);
        clearTimeout(timer);
        signal?.removeEventListener("abort", onEnd);
        resolve(response);
      };
      const onEnd = () => this.#whenAllIsRead(() => settle(undefined));
      // Not AbortSignal.any(): asked many times a second, it makes the young generation grow by tens of megabytes.
      const timer = setTimeout(onEnd, timeoutMs);
      signal?.addEventListener("abort", onEnd);
      this.#pending.set(id, settle);
      // What cannot be sent (no route, refused) is not answered either: the deadline decides.
      socket.send(encodeRequest({ nonce, keys }), port, address, () => undefined);
    });
  }

  /** A process that has stood still looks at its clock before it looks at what has come meanwhile, some at a time. */
  #whenAllIsRead(callback: () => void, turns = MAX_TURNS): void {
    const before = this.#received;
    setImmediate(() => {
      if (this.#received === before || turns === 0) callback();
      else this.#whenAllIsRead(callback, turns - 1);
    });
  }

  #socket(type: "udp4" | "udp6"): Promise<Socket> {
    const existing = this.#sockets.get(type);
    if (existing !== undefined) return existing;
    const opened = this.#open(type);
    this.#sockets.set(type, opened);
    opened.catch(() => this.#sockets.delete(type));
    return opened;
  }

  async #open(type: "udp4" | "udp6"): Promise<Socket> {
    const socket = createSocket({ type });
    try {
      socket.bind(0);
      await once(socket, "listening");
    } catch (err) {
      socket.close();
      throw err;
    }
    socket.on("error", () => undefined);
    socket.on("message", (datagram) => {
      this.#received += 1;
      const response = decodeResponse(datagram);
      if (response !== undefined) this.#pending.get(Buffer.from(response.nonce).toString("hex"))?.(response);
    });
    return socket;
  }
}
