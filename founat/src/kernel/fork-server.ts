import { type ChildProcess, spawn } from "node:child_process";
import { FORK_SERVER_PROGRAM } from "./fork-server-program.ts";
import { killed, type ProcessOptions, type ProcessResult, SILENCE_MS, silentFor } from "./process.ts";
import { MEMFD_CREATE, SETNS } from "./system-calls.ts";

/** How often a command is looked at in the time in which it may print nothing. */
const TICKS = 20;

/** What one command may print, in blocks of 512 bytes: memory holds it. */
const MAX_OUTPUT_BLOCKS = (16 * 1024 * 1024) / 512;

const ANSWER = /^(\d+) (\d+|-) (\d+) (\d+)\n/;

type Resolve = (result: ProcessResult) => void;

/**
 * A process that starts commands in network namespaces for another one, which is large. To start one, Node copies its page tables
 * and waits until that is done, and `nsenter` loads libraries: 4 ms for a command of one. It starts with the first
 * command, and again with the next one where it was ended.
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
  run(netnsPath: string, file: string, args: readonly string[], input: string): Promise<ProcessResult> {
    const server = this.#process ?? this.#start();
    const words = Buffer.from([netnsPath, file, ...args].join("\0"));
    const text = Buffer.from(input);
    this.#count += 1;
    const number = this.#count;
    return new Promise((resolve) => {
      this.#waiting.set(number, resolve);
      server.stdin?.write(
        Buffer.concat([Buffer.from(`${number} ${words.length} ${text.length}\n`), words, text]),
      );
    });
  }

  /** Lets it end. Commands that run go on. */
  close(): void {
    this.#process?.stdin?.end();
  }

  #start(): ChildProcess {
    const tick = `${this.#silenceMs / 1000 / TICKS}`;
    const silent = [tick, `${TICKS}`, killed(silentFor(this.#silenceMs))];
    const perl = ["perl", "-e", FORK_SERVER_PROGRAM, "--", SETNS, MEMFD_CREATE, ...silent];
    const limited = `ulimit -f ${MAX_OUTPUT_BLOCKS} && exec "$@"`;
    const child: ChildProcess = spawn("sh", ["-c", limited, "sh", ...perl], {
      stdio: "pipe",
      detached: true,
    });
    this.#process = child;
    let complaint = "";
    const end = (reason: string) => {
      if (this.#process !== child) return;
      this.#process = undefined;
      const stderr = `what starts commands has ended: ${complaint || reason}`;
      for (const resolve of this.#waiting.values()) resolve({ stdout: "", stderr, exitCode: undefined });
      this.#waiting.clear();
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
      this.#waiting.delete(Number(number));
      rest = rest.subarray(end);
    }
  }
}
