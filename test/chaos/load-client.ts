import { PassThrough } from "node:stream";
import type { ClusterNode, CommandInContainer } from "../bed/cluster/node.ts";
import { LoadDialogue } from "./load-dialogue.ts";
import { LOAD_COMMAND } from "./load-program.ts";
import { type LoadOptions, type LoadReport, loadArguments } from "./load-report.ts";
import type { RunningPod } from "./pods.ts";

/** The load of one client pod. It is told what to do by way of its node's machine, whatever becomes of the cluster. */
export class LoadClient {
  readonly #command: CommandInContainer;
  readonly #dialogue: LoadDialogue;
  #gateways: readonly string[] = [];

  /** Starts it. */
  constructor(node: ClusterNode, pod: RunningPod, options: LoadOptions) {
    const stdout = new PassThrough();
    let complaint = "";
    const command = [LOAD_COMMAND, ...loadArguments(options)];
    this.#command = node.startInContainer(pod.containerId, command, (stream, data) => {
      if (stream === "stdout") stdout.write(data);
      else complaint += data.toString();
    });
    const write = (text: string) => this.#command.write(Buffer.from(text));
    this.#dialogue = new LoadDialogue(stdout, write, () => complaint);
    void this.#command.ended.then(
      () => stdout.end(),
      (error: unknown) => {
        complaint += String(error);
        stdout.end();
      },
    );
  }

  /** Waits until all of its flows are open. */
  async ready(): Promise<void> {
    this.#gateways = await this.#dialogue.ready();
  }

  /** Whether one of its TCP flows began with that gateway. */
  uses({ ipv4, ipv6 }: RunningPod): boolean {
    return this.#gateways.some((gateway) => gateway === ipv4 || gateway === ipv6);
  }

  /** Has it note the time: what comes from now on is of the scenario. */
  mark(): Promise<void> {
    return this.#dialogue.mark();
  }

  /** Ends it. */
  stop(): Promise<LoadReport> {
    return this.#dialogue.stop();
  }

  /** Ends it, whatever it does. */
  kill(): Promise<void> {
    return this.#command.kill();
  }
}
