import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { LoadReport } from "./load-report.ts";

/** What the load program is told, and what it answers, line by line (load/load.go). */
export class LoadDialogue {
  readonly #lines: AsyncIterator<string>;
  readonly #write: (text: string) => void;
  readonly #complaint: () => string;

  /** @param complaint what it has written to stderr */
  constructor(output: Readable, write: (text: string) => void, complaint: () => string = () => "") {
    this.#lines = createInterface({ input: output })[Symbol.asyncIterator]();
    this.#write = write;
    this.#complaint = complaint;
  }

  /**
   * Waits until all of its flows are open.
   *
   * @returns the gateway of each TCP flow
   */
  ready(): Promise<string[]> {
    return this.#expect("ready");
  }

  /** Has it note the time: what comes from now on is what is measured. */
  async mark(): Promise<void> {
    this.#write("mark\n");
    await this.#expect("marked");
  }

  /** Ends it. */
  async stop(): Promise<LoadReport> {
    this.#write("stop\n");
    return LoadReport.parse(JSON.parse(await this.#next()));
  }

  /** @returns the words behind that one */
  async #expect(word: string): Promise<string[]> {
    const line = await this.#next();
    const [first, ...others] = line.split(" ");
    if (first === word) return others;
    throw new Error(`the load program said ${JSON.stringify(line)} instead of ${word}`);
  }

  async #next(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the load program has ended: ${this.#complaint()}`);
    return value;
  }
}
