import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Fate, MortalAgentOptions } from "./mortal-agent.ts";

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

  get isDead(): boolean {
    return this.#child.signalCode === "SIGKILL";
  }

  /** Resolves when the process knows at which of its next steps it ends. */
  async tell(fate: Fate): Promise<void> {
    const told = once(this.#child, "message");
    this.#child.send(fate);
    await told;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#exit;
  }
}
