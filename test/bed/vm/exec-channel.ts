import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { ToolError } from "@egress-nat/tools/system/tool-error";
import { z } from "zod";

const DEFAULT_TIMEOUT_MS = 120_000;
const RETRY_MS = 20;

export interface ExecOptions {
  /** Given to the command as its whole input; absent: it reads end of file. */
  readonly input?: string | Uint8Array;
  /** After this time the command is killed and {@link exec} throws. Two minutes unless told; Infinity: never. */
  readonly timeoutMs?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** The command's working directory; "/" unless told. */
  readonly directory?: string;
  /** Kills the command when aborted. */
  readonly signal?: AbortSignal;
}

export interface ExecResult {
  readonly stdout: string;
  readonly stderr: string;
  /** 128 and the signal's number for a command that a signal ended; 127 for one that could not be started. */
  readonly exitCode: number;
}

const CommandEnd = z.object({ exitCode: z.int(), error: z.string().optional() });
type CommandEnd = z.infer<typeof CommandEnd>;

/** One command that runs in a virtual machine; exec-server/main.go describes what goes over the wire. */
export interface RunningCommand {
  write(input: Uint8Array): void;
  endInput(): void;
  /** Hangs up: the command's process group is killed. */
  kill(): void;
  /** Settles when the command has ended. Rejects when the channel breaks first. */
  readonly ended: Promise<CommandEnd>;
}

/** Starts a command and hands on its output as it comes. */
export function startCommand(
  socket: string,
  argv: readonly string[],
  options: Pick<ExecOptions, "env" | "directory">,
  onOutput: (stream: "stdout" | "stderr", data: Buffer) => void,
): RunningCommand {
  const connecting = connected(socket);
  const send = (kind: string, payload: Uint8Array): void => {
    const header = Buffer.alloc(5, kind);
    header.writeUInt32BE(payload.length, 1);
    const write = (connection: Socket) => connection.write(Buffer.concat([header, payload]));
    connecting.then(write, () => undefined);
  };
  const { env = {}, directory = "/" } = options;
  send("R", Buffer.from(JSON.stringify({ argv, env, dir: directory })));
  const ended = new Promise<CommandEnd>((resolve, reject) => {
    let pending: Buffer = Buffer.alloc(0);
    const onData = (data: Buffer): void => {
      pending = pending.length === 0 ? data : Buffer.concat([pending, data]);
      while (pending.length >= 5) {
        const end = 5 + pending.readUInt32BE(1);
        if (pending.length < end) break;
        const kind = String.fromCharCode(pending.readUInt8(0));
        const payload = pending.subarray(5, end);
        pending = pending.subarray(end);
        if (kind === "O") onOutput("stdout", payload);
        else if (kind === "E") onOutput("stderr", payload);
        else resolve(CommandEnd.parse(JSON.parse(payload.toString())));
      }
    };
    const broken = (cause?: Error): void =>
      reject(
        new ToolError("exec-channel-broken", `the virtual machine behind ${socket} closed the connection`, {
          retryable: true,
          cause,
        }),
      );
    const follow = (connection: Socket) =>
      connection
        .on("data", onData)
        .on("error", broken)
        .on("close", () => broken());
    connecting.then(follow, broken);
  });
  // Whoever does not wait for the end, such as one that kills the command, need not handle its failure.
  ended.catch(() => undefined);
  return {
    write: (input) => send("I", input),
    endInput: () => send("I", Buffer.alloc(0)),
    kill: () =>
      void connecting.then(
        (connection) => connection.destroy(),
        () => undefined,
      ),
    ended,
  };
}

/** Many commands at once may fill the backlog of the socket for a moment. */
async function connected(socket: string): Promise<Socket> {
  for (;;) {
    const connection = connect(socket);
    try {
      await once(connection, "connect");
      return connection;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      await pause(RETRY_MS);
    }
  }
}

/**
 * Runs a command in a virtual machine to its end.
 *
 * @param socket the machine's exec channel
 * @param command a bash script, or a program and its arguments
 * @throws ToolError `exec-timeout`, `exec-failed` when the program could not be started, `exec-channel-broken`
 */
export async function exec(
  socket: string,
  command: string | readonly string[],
  options: ExecOptions = {},
): Promise<ExecResult> {
  const argv = typeof command === "string" ? ["bash", "-c", command] : command;
  const { timeoutMs = DEFAULT_TIMEOUT_MS, input } = options;
  const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const running = startCommand(socket, argv, options, (stream, data) =>
    output[stream].push(Buffer.from(data)),
  );
  if (input !== undefined && input.length > 0) running.write(Buffer.from(input));
  running.endInput();
  let timer: NodeJS.Timeout | undefined;
  const interrupted = new Promise<never>((_, reject) => {
    if (Number.isFinite(timeoutMs)) {
      timer = setTimeout(() => reject(timedOut(argv, timeoutMs, output)), timeoutMs);
    }
    options.signal?.addEventListener("abort", () => reject(options.signal?.reason), { once: true });
  });
  try {
    const end = await Promise.race([running.ended, interrupted]);
    if (end.exitCode === 127 && end.error !== undefined) {
      throw new ToolError("exec-failed", `cannot run ${argv[0]} in the virtual machine: ${end.error}`);
    }
    return { ...asText(output), exitCode: end.exitCode };
  } finally {
    clearTimeout(timer);
    running.kill();
  }
}

/**
 * As {@link exec}, but a command that fails is an error.
 *
 * @returns what it wrote to stdout
 * @throws ToolError `command-failed` with what it wrote to stderr
 */
export async function run(
  socket: string,
  command: string | readonly string[],
  options: ExecOptions = {},
): Promise<string> {
  const { stdout, stderr, exitCode } = await exec(socket, command, options);
  if (exitCode !== 0) {
    const shown = typeof command === "string" ? command : command.join(" ");
    throw new ToolError("command-failed", `exit code ${exitCode} of: ${shown}\n${stderr}${stdout}`);
  }
  return stdout;
}

interface Output {
  readonly stdout: readonly Buffer[];
  readonly stderr: readonly Buffer[];
}

function asText(output: Output): { stdout: string; stderr: string } {
  return { stdout: Buffer.concat(output.stdout).toString(), stderr: Buffer.concat(output.stderr).toString() };
}

function timedOut(argv: readonly string[], timeoutMs: number, output: Output): ToolError {
  const { stdout, stderr } = asText(output);
  return new ToolError(
    "exec-timeout",
    `no end after ${timeoutMs / 1000} s of: ${argv.join(" ")}\n${stderr}${stdout}`,
    {
      retryable: true,
    },
  );
}
