/** Somebody who was seen by a server of the internet. */
export interface Visit {
  readonly source: string;
  /** The server's address. */
  readonly destination: string;
  readonly protocol: "tcp" | "udp" | "http";
  /** What a datagram held, or the path of an HTTP request. */
  readonly text: string;
  /** RFC 3339. */
  readonly at: string;
}

const MAX_VISITS = 100_000;
const MAX_TEXT_LENGTH = 2000;

/** Who was seen, in order; the oldest are forgotten when there are too many. */
export class BookOfVisitors {
  #visits: Visit[] = [];

  add(visit: Omit<Visit, "at">): void {
    if (this.#visits.length >= MAX_VISITS) this.#visits = this.#visits.slice(MAX_VISITS / 2);
    this.#visits.push({ ...visit, text: visit.text.slice(0, MAX_TEXT_LENGTH), at: new Date().toISOString() });
  }

  /** Visits whose text contains a text; all of them for the empty text. */
  with(text: string): readonly Visit[] {
    return this.#visits.filter((visit) => visit.text.includes(text));
  }

  forget(): void {
    this.#visits = [];
  }
}
