import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import type { ControlPlane } from "../../bed/cluster/control-plane.ts";
import { freePorts } from "../../bed/system/free-ports.ts";
import { BackgroundProcess } from "../../bed/system/process.ts";
import { Cleanup } from "../cleanup.ts";
import type { Pod } from "./pod.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** More often than anybody probes, so that it decides nothing. */
const PROBE_EVERY_MS = 10;

/** Not so often that the answers, of more than a megabyte each, are what the memory holds. */
const SCRAPE_EVERY_MS = 200;

/** The operator's program as its image has it and its pod runs it, restarted as often as one likes. */
export class OperatorProgram {
  readonly #folder: string;
  /** What runs it, with its health server at a port. */
  readonly #command: (port: number) => readonly string[];

  private constructor(folder: string, command: (port: number) => readonly string[]) {
    this.#folder = folder;
    this.#command = command;
  }

  /** @param environment the variables of its container that matter for what is measured */
  static async build(
    { plan: { folder } }: ControlPlane,
    pod: Pod,
    environment: Readonly<Record<string, string>>,
  ): Promise<OperatorProgram> {
    const bundle = join(folder, "operator");
    await bundleProgram(join(ROOT, "operator/src/main.ts"), bundle);
    const variables = Object.entries({ ...environment, ...pod.environment });
    return new OperatorProgram(folder, (port) =>
      pod.command([
        ...["env", ...variables.map(([name, value]) => `${name}=${value}`), `HEALTH_PORT=${port}`],
        ...[process.execPath, join(bundle, "main.js"), "serve"],
      ]),
    );
  }

  async start(): Promise<OperatorProcess> {
    const [port = 0] = await freePorts(1);
    const startedAt = performance.now();
    const process = await BackgroundProcess.start({
      name: "operator",
      command: this.#command(port),
      folder: this.#folder,
      lifetime: "owner",
    });
    return new OperatorProcess(process, `http://127.0.0.1:${port}`, startedAt);
  }
}

/** A process of its own, so that its memory is what a pod would take. */
export class OperatorProcess implements AsyncDisposable {
  /** By `performance.now()`. */
  readonly startedAt: number;
  readonly #end = new Cleanup(() => this.#terminate());
  readonly #process: BackgroundProcess;
  readonly #url: string;

  constructor(process: BackgroundProcess, url: string, startedAt: number) {
    this.#process = process;
    this.#url = url;
    this.startedAt = startedAt;
  }

  /** @returns milliseconds from the start of the process to the first /readyz that says yes */
  async ready(): Promise<number> {
    await this.until("the operator to be ready", async () => (await fetch(`${this.#url}/readyz`)).ok);
    return performance.now() - this.startedAt;
  }

  /** Waits until it has gone through so many Egresses without an error, and none is left. */
  async hasReconciled(egresses: number): Promise<void> {
    const areReconciled = async () => {
      const metrics = await (await fetch(`${this.#url}/metrics`)).text();
      const value = (series: string) =>
        Number(
          metrics
            .split("\n")
            .find((line) => line.startsWith(series))
            ?.split(" ")[1],
        );
      return (
        value('egress_nat_operator_reconciles_total{controller="egress",outcome="done"}') >= egresses &&
        value('egress_nat_operator_queue_depth{controller="egress"}') === 0
      );
    };
    await this.until(`${egresses} reconciled Egresses`, areReconciled, SCRAPE_EVERY_MS);
  }

  /** Waits for something that this process brings about. */
  until(
    what: string,
    condition: () => Promise<boolean> | boolean,
    intervalMs = PROBE_EVERY_MS,
  ): Promise<boolean> {
    return waitUntil(condition, {
      what,
      timeoutMs: 600_000,
      intervalMs,
      explain: () => this.#process.failure("does not get there").message,
    });
  }

  /** VmRSS in MB. */
  async residentSet(): Promise<number> {
    const status = await readFile(`/proc/${this.#process.pid()}/status`, "utf8");
    return (Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6;
  }

  /** Processor time since its start: fields 14 and 15 of /proc/PID/stat (proc(5)), in ticks of 10 ms. */
  async cpuSeconds(): Promise<number> {
    const stat = await readFile(`/proc/${this.#process.pid()}/stat`, "utf8");
    const afterName = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(afterName[11]) + Number(afterName[12])) / 100;
  }

  /** Ends it in good order, as a rollout does. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#end[Symbol.asyncDispose]();
  }

  async #terminate(): Promise<void> {
    this.#process.signal("SIGTERM");
    await waitUntil(() => this.#process.pid() === undefined, {
      what: "the end of the operator",
      timeoutMs: 15_000,
      intervalMs: PROBE_EVERY_MS,
    });
  }
}
