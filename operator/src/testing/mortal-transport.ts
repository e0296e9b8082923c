import type { RequestOptions, StreamOptions, Transport } from "@egress-nat/kube";
import { isWrite } from "./writes.ts";

/** How a process ends with a write: before it is sent, or after it was carried out, before the answer is read. */
export type Death = "before" | "after";

/**
 * The way to the API server of a process that is killed at one of its writes. From then on nothing it asks for is
 * sent, and no answer reaches it.
 */
export class MortalTransport implements Transport {
  readonly #transport: Transport;
  #remainingWrites = Number.POSITIVE_INFINITY;
  #death: Death = "before";
  isDead = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** @param write which one of the writes from now on is the last, from 1 */
  dieAt(write: number, death: Death): void {
    this.#remainingWrites = write;
    this.#death = death;
  }

  async request<T>(options: RequestOptions): Promise<T> {
    this.#mustLive();
    if (isWrite(options)) {
      this.#remainingWrites -= 1;
      if (this.#remainingWrites === 0) await this.#die(options);
    }
    this.#mustLive();
    const answer = await this.#transport.request<T>(options);
    this.#mustLive();
    return answer;
  }

  async stream(options: StreamOptions): Promise<AsyncIterable<Buffer>> {
    this.#mustLive();
    return this.#transport.stream(options);
  }

  close(): void {}

  async #die(last: RequestOptions): Promise<void> {
    if (this.#death === "after") await this.#transport.request(last);
    this.isDead = true;
  }

  #mustLive(): void {
    if (this.isDead) throw new Error("the process was killed");
  }
}
