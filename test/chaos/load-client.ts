import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import type { ClusterNode } from "../bed/cluster/node.ts";
import type { RunningCommand } from "../bed/vm/exec-channel.ts";
import { LOAD_COMMAND } from "./load-program.ts";
import { type LoadOptions, LoadReport, loadArguments } from "./load-report.ts";
import type { RunningPod } from "./pods.ts";

/** The load of one client pod. It is told what to do by way of its node's machine, whatever becomes of the cluster. */
export class LoadClient {
  readonly #command: RunningCommand;
  readonly #lines: AsyncIterator<string>;
  #complaint = "";

  private constructor(node: ClusterNode, pod: RunningPod, options: LoadOptions) {
    const stdout = new PassThrough();
    this.#lines = createInterface({ input: stdout })[Symbol.asyncIterator]();
    const command = [LOAD_COMMAND, ...loadArguments(options)];
    this.#command = node.startInContainer(pod.containerId, command, (stream, data) => {
      if (stream === "stdout") stdout.write(data);
      else this.#complaint += data.toString();
    });
    void this.#command.ended.then(
      () => stdout.end(),
      (error: unknown) => {
        this.#complaint += String(error);
        stdout.end();
      },
    );
  }

  /** Starts it; all of its flows are open when this returns. */
  static async start(node: ClusterNode, pod: RunningPod, options: LoadOptions): Promise<LoadClient> {
    const client = new LoadClient(node, pod, options);
    await client.#expect("ready");
    return client;
  }

  /** Has it note the time: what comes from now on is of the scenario. */
  async mark(): Promise<void> {
    this.#say("mark");
    await this.#expect("marked");
  }

  /** Ends it. */
  async stop(): Promise<LoadReport> {
    this.#say("stop");
    return LoadReport.parse(JSON.parse(await this.#next()));
  }

  /** Ends it, whatever it does. */
  kill(): void {
    this.#command.kill();
  }

  #say(line: string): void {
    this.#command.write(Buffer.from(`${line}\n`));
  }

  async #expect(word: string): Promise<void> {
    const line = await this.#next();
    if (line !== word) throw new Error(`the load program said ${JSON.stringify(line)} instead of ${word}`);
  }

  async #next(): Promise<string> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the load program has ended: ${this.#complaint}`);
    return value;
  }
}
