import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Fate, MortalAgentOptions, Question } from "./mortal-agent.ts";

/** A node agent in a process of its own, which is killed. */
export class MortalProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #exit: Promise<unknown>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#exit = once(child, "exit");
  }

  static start(options: MortalAgentOptions): MortalProcess {
    const program = join(import.meta.dirname, "mortal-agent.ts");
    const execArgv = ["--conditions=source", "--disable-warning=ExperimentalWarning"];
    return new MortalProcess(fork(program, [JSON.stringify(options)], { execArgv }));
  }

  /** Resolves when the process knows at which of its next steps it ends. */
  async tell(fate: Fate): Promise<void> {
    await this.#ask(fate);
  }

  /** The process itself is asked: what it has done is seen before its death is. */
  isAlive(): Promise<boolean> {
    return this.#ask("are you alive?");
  }

  /** @returns whether it has answered; else it is dead */
  #ask(message: Fate | Question): Promise<boolean> {
    const answered = once(this.#child, "message").then(() => true);
    // That it cannot be sent is told by the exit.
    this.#child.send(message, () => undefined);
    return Promise.race([answered, this.#exit.then(() => false)]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exit;
  }
}
