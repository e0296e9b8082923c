import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, open, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { z } from "zod";
import { inNetns } from "./network-namespace.ts";

export interface ProcessOptions {
  /** Unique in its state folder. */
  readonly name: string;
  readonly command: readonly string[];
  /** Where the record of the process (`run/NAME.json`) and its log (`logs/NAME/output.log`) are kept. */
  readonly folder: string;
  /** Path of the network namespace to run in; absent: the caller's. */
  readonly netns?: string | undefined;
  /** `owner`: the kernel kills it when this program ends, however it ends. `detached`: it outlives this program. */
  readonly lifetime: "owner" | "detached";
}

// A pid alone may have been given to another process since; with its start time it names one process for good.
const ProcessRecord = z.object({ pid: z.int().positive(), startTime: z.string() });
type ProcessRecord = z.infer<typeof ProcessRecord>;

/** A background process that is known by its record in a state folder, to the program that started it and to later ones. */
export class BackgroundProcess {
  readonly name: string;
  readonly logFile: string;
  readonly #recordFile: string;

  /** A process that may have been started by an earlier program; whether it runs is what {@link pid} says. */
  constructor(folder: string, name: string) {
    this.name = name;
    this.logFile = join(folder, "logs", name, "output.log");
    this.#recordFile = join(folder, "run", `${name}.json`);
  }

  /** Starts a process; its output is appended to its log. */
  static async start(options: ProcessOptions): Promise<BackgroundProcess> {
    const background = new BackgroundProcess(options.folder, options.name);
    if (background.pid() !== undefined) {
      throw new ToolError("already-running", `${options.name} is running already as pid ${background.pid()}`);
    }
    await mkdir(dirname(background.logFile), { recursive: true });
    await mkdir(dirname(background.#recordFile), { recursive: true });
    const owned = options.lifetime === "owner" ? ["setpriv", "--pdeathsig", "KILL", "--"] : [];
    const [file, ...arguments_] = [...owned, ...inNetns(options.netns, options.command)] as [
      string,
      ...string[],
    ];
    const log = await open(background.logFile, "a");
    try {
      const child = spawn(file, arguments_, { detached: true, stdio: ["ignore", log.fd, log.fd] });
      await new Promise((resolve, reject) => {
        child.once("spawn", resolve);
        child.once("error", (cause) =>
          reject(
            new ToolError("spawn-failed", `cannot run ${file} for ${options.name}: ${cause.message}`, {
              cause,
            }),
          ),
        );
      });
      const pid = child.pid as number;
      const startTime = startTimeOf(pid);
      if (startTime === undefined) throw background.failure("ended at once");
      await writeFile(background.#recordFile, JSON.stringify({ pid, startTime } satisfies ProcessRecord));
      child.unref();
    } finally {
      await log.close();
    }
    return background;
  }

  /** The process's pid while it runs, else undefined. */
  pid(): number | undefined {
    const record = readRecord(this.#recordFile);
    return record !== undefined && startTimeOf(record.pid) === record.startTime ? record.pid : undefined;
  }

  /** Sends a signal; does nothing when the process is gone. */
  signal(signal: NodeJS.Signals): void {
    const pid = this.pid();
    if (pid !== undefined) process.kill(pid, signal);
  }

  /** Ends the process at once and waits until it is gone. Succeeds when it is gone already. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await waitUntil(() => this.pid() === undefined, {
      what: `the end of ${this.name}`,
      timeoutMs: 10_000,
      intervalMs: 10,
    });
    await rm(this.#recordFile, { force: true });
  }

  /** An error about this process that ends with the last lines of its log. */
  failure(what: string): ToolError {
    return new ToolError(
      "process-failed",
      `${this.name} ${what}; the end of ${this.logFile}:\n${lastLines(this.logFile)}`,
    );
  }

  /** Throws when the process has ended: for use in the conditions that wait for what it does. */
  assertRunning(): void {
    if (this.pid() === undefined) throw this.failure("has ended");
  }

  /** The whole log as text; empty when there is none. */
  async log(): Promise<string> {
    return readFile(this.logFile, "utf8").catch(() => "");
  }
}

/** The end of a log, to explain a failure. */
export function lastLines(logFile: string): string {
  try {
    return readFileSync(logFile, "utf8").split("\n").slice(-15).join("\n");
  } catch {
    return "(no log)";
  }
}

function readRecord(file: string): ProcessRecord | undefined {
  try {
    return ProcessRecord.parse(JSON.parse(readFileSync(file, "utf8")));
  } catch {
    return undefined;
  }
}

/**
 * Field 22 of /proc/PID/stat (proc(5)), undefined for a process that is gone or a zombie: one without threads, for while
 * some of them still end, the process holds its sockets.
 */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The second field is the command in parentheses and may itself hold blanks and parentheses.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const hasEnded = /[ZX]/.test(fields[0] ?? "") && readdirSync(`/proc/${pid}/task`).length <= 1;
    return hasEnded ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
