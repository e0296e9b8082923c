import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { FORK_SERVER_PROGRAM } from "./fork-server-program.ts";
import { killed, type ProcessOptions, type ProcessResult, SILENCE_MS, silentFor } from "./process.ts";
import { systemCall } from "./system-calls.ts";

/** What one command may print: memory holds it. */
const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;
/** The unit of `ulimit -f`. */
const BLOCK_BYTES = 512;

/** Of the time in which a command may print nothing: none takes so long, unless who is to end it has stopped. */
const PATIENCE = 3;

const ANSWER = /^(\d+) (\d+|-) (\d+) (\d+)\n/;

type Resolve = (result: ProcessResult) => void;

/**
 * A process that starts commands in network namespaces for another one, which is large. To start one, Node copies its page tables
 * and waits until that is done, and `nsenter` loads libraries: 4 ms for a command of one. It starts with the first
 * command, and again with the next one where it was ended. It does not keep its program from ending.
 */
export class ForkServer {
  readonly #silenceMs: number;
  readonly #waiting = new Map<number, Resolve>();
  #count = 0;
  #process: ChildProcess | undefined;

  constructor({ silenceMs = SILENCE_MS }: ProcessOptions = {}) {
    this.#silenceMs = silenceMs;
  }

  /**
   * Runs a program to its end.
   *
   * @param netnsPath the network namespace to enter; needs CAP_SYS_ADMIN (setns(2))
   * @returns also where it could not be started, or has exceeded a limit
   */
  async run(netnsPath: string, file: string, args: readonly string[], input: string): Promise<ProcessResult> {
    const all = [netnsPath, file, ...args];
    if (all.some((word) => word.includes("\0"))) return noAnswer("a word of it holds a zero byte");
    const [words, text] = [Buffer.from(all.join("\0")), Buffer.from(input)];
    const server = this.#process ?? this.#start();
    this.#count += 1;
    const number = this.#count;
    const header = Buffer.from(`${number} ${words.length} ${text.length}\n`);
    const stop = setTimeout(() => server.kill("SIGKILL"), PATIENCE * this.#silenceMs);
    hold(server, true);
    try {
      return await new Promise((resolve) => {
        this.#waiting.set(number, resolve);
        server.stdin?.write(Buffer.concat([header, words, text]));
      });
    } finally {
      clearTimeout(stop);
      this.#waiting.delete(number);
      if (this.#waiting.size === 0) hold(server, false);
    }
  }

  /** Lets it end, when all commands have. */
  close(): void {
    this.#process?.stdin?.end();
  }

  #start(): ChildProcess {
    const calls = ["setns", "memfd_create", "clock_gettime", "prctl", "exit_group"].map(systemCall);
    const talkative = killed(`it printed more than ${MAX_OUTPUT_BYTES} bytes`);
    const limits = [`${this.#silenceMs / 1000}`, killed(silentFor(this.#silenceMs)), talkative];
    const perl = ["perl", "-e", FORK_SERVER_PROGRAM, "--", ...calls, ...limits];
    const limited = `ulimit -f ${MAX_OUTPUT_BYTES / BLOCK_BYTES} && exec "$@"`;
    const child: ChildProcess = spawn("sh", ["-c", limited, "sh", ...perl], {
      stdio: "pipe",
      detached: true,
    });
    this.#process = child;
    let complaint = "";
    const end = (reason: string) => {
      if (this.#process !== child) return;
      this.#process = undefined;
      const none = noAnswer(`what starts commands has ended: ${complaint || reason}`);
      for (const resolve of this.#waiting.values()) resolve(none);
    };
    // Where there was no file descriptor left it has no streams, and only the error says why.
    child.once("error", (error) => end(String(error)));
    child.once("close", (code, signal) => end(signal ?? `code ${code}`));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      complaint = text.trim();
    });
    let received: Buffer = Buffer.alloc(0);
    child.stdout?.on("data", (bytes: Buffer) => {
      received = this.#takeAnswers(Buffer.concat([received, bytes]));
    });
    // A program that ends early closes the pipe; what it has complained of tells more than EPIPE does.
    child.stdin?.on("error", () => undefined);
    return child;
  }

  /** @returns what is left: the beginning of an answer */
  #takeAnswers(received: Buffer): Buffer {
    let rest = received;
    for (;;) {
      const [line = "", number, code, stdoutBytes, stderrBytes] =
        ANSWER.exec(rest.toString("latin1", 0, 64)) ?? [];
      const begin = line.length;
      const middle = begin + Number(stdoutBytes);
      const end = middle + Number(stderrBytes);
      if (line === "" || rest.length < end) return rest;
      const exitCode = code === "-" ? undefined : Number(code);
      this.#waiting.get(Number(number))?.({
        stdout: rest.toString("utf8", begin, middle),
        stderr: rest.toString("utf8", middle, end),
        exitCode,
      });
      rest = rest.subarray(end);
    }
  }
}

/** Where a command has no result, not even a failure. */
function noAnswer(stderr: string): ProcessResult {
  return { stdout: "", stderr, exitCode: undefined };
}

/** @param isHeld whether this program does not end before it */
function hold(child: ChildProcess, isHeld: boolean): void {
  const streams = [child.stdin, child.stdout, child.stderr] as (Socket | null)[];
  for (const part of [child, ...streams]) {
    if (isHeld) part?.ref();
    else part?.unref();
  }
}
