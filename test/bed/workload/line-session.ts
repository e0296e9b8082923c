import { execa, type ResultPromise } from "execa";

const ANSWER_TIMEOUT_MS = 300_000;

const OPTIONS = {
  stdin: "pipe",
  reject: false,
  buffer: { stdout: false, stderr: true },
} as const;

/** A command that answers each line of its input with a line; the lines are asked one after another. */
export class LineSession {
  readonly #process: ResultPromise<typeof OPTIONS>;
  readonly #answers: AsyncIterator<string>;
  #last: Promise<unknown> = Promise.resolve();
  #isOpen = true;

  constructor([file = "", ...args]: readonly string[]) {
    this.#process = execa(file, args, OPTIONS);
    // A command that ended cannot be written to; what it said on its way out comes with the missing answer.
    this.#process.stdin.on("error", () => undefined);
    this.#answers = this.#process.iterable()[Symbol.asyncIterator]();
    void this.#process.then(() => this.close());
  }

  /** False once the command has ended, or is about to. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** @throws an error with the command's own words when it ends instead of answering */
  ask(line: string): Promise<string> {
    const answer = this.#last.then(() => this.#exchange(line));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  close(): void {
    this.#isOpen = false;
    this.#process.kill();
  }

  async #exchange(line: string): Promise<string> {
    const timer = setTimeout(() => this.close(), ANSWER_TIMEOUT_MS);
    try {
      this.#process.stdin.write(`${line}\n`);
      const { value, done } = await this.#answers.next();
      if (done) throw new Error(`no answer: ${(await this.#process).stderr}`);
      return value;
    } catch (error) {
      this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}
