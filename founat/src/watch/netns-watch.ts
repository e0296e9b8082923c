import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { CLIENT_TABLE } from "../backends/nft/guard-table.ts";
import { REFUSAL_REASONS, type Refusals } from "../client/policy.ts";
import { relevantSysctls } from "../client/sysctls.ts";
import { systemCall } from "../kernel/system-calls.ts";
import { WATCH_PROGRAM } from "./watch-program.ts";

/** Of every interface: which ones a client has depends on its gateways. */
const SYSCTLS = relevantSysctls({ uplink: "*", egresses: [] });

export interface NetnsWatchOptions {
  /** Told within a second of a change, by whomever, and once after {@link NetnsWatch.watch}; eight seconds for sysctls. */
  readonly onChange: (netns: string) => void;
  /** Told what the guard has refused since it was made: once where there is one, and within eight seconds when it is more. */
  readonly onRefused: (netns: string, refusals: Refusals) => void;
  /** Told where there is nothing to watch by that name, or it is not allowed. */
  readonly onLost: (netns: string, reason: string) => void;
  /** As that of a kernel; default: /proc/sys. */
  readonly sysctlRoot?: string;
}

/**
 * Notices that something has changed in network namespaces of clients: links, addresses, routes, rules, FoU ports, any
 * table of nft, sysctls. It reads the counters of their guards as well, because it is there. One process watches all of
 * them (ADR 0026). It keeps a namespace alive that its pod has left, until it is told to forget it.
 */
export interface NetnsWatch {
  /**
   * Starts, or starts again.
   *
   * @param netns its file; needs CAP_SYS_ADMIN (setns(2)) and CAP_NET_ADMIN
   */
  watch(netns: string): void;
  forget(netns: string): void;
  close(): void;
  /** Why it has ended, in words; nothing is watched any more. */
  readonly ended: Promise<string>;
}

/** The command that runs the watch; it takes no words from a shell. */
export function netnsWatchCommand(sysctlRoot = "/proc/sys"): readonly string[] {
  const counters = [CLIENT_TABLE, REFUSAL_REASONS.join(",")];
  return ["perl", "-e", WATCH_PROGRAM, "--", systemCall("setns"), ...counters, sysctlRoot, ...SYSCTLS];
}

export function openNetnsWatch({ sysctlRoot, ...told }: NetnsWatchOptions): NetnsWatch {
  const [file = "", ...args] = netnsWatchCommand(sysctlRoot);
  // Where there is no file descriptor left it has no streams, and only the error says why.
  const child: ChildProcess = spawn(file, args, { stdio: "pipe" });
  let complaint = "";
  const ended = new Promise<string>((resolve) => {
    // Where the program could not be started, only the error says why.
    child.once("error", (error) => resolve(String(error)));
    child.once("close", (code, signal) =>
      resolve(complaint.trim() || `ended by ${signal ?? `code ${code}`}`),
    );
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    complaint = text;
  });
  const lines = child.stdout && createInterface({ input: child.stdout });
  lines?.on("line", (line) => {
    const [event, netns = "", ...words] = line.split(" ");
    // In the order of the reasons.
    const [rejected = 0, unheard = 0] = words.map(Number);
    if (event === "lost") told.onLost(netns, words.join(" "));
    else if (event === "counted") told.onRefused(netns, { rejected, unheard });
    else told.onChange(netns);
  });
  // A program that ends early closes the pipe; `ended` tells more than EPIPE does.
  child.stdin?.on("error", () => undefined);
  return {
    watch: (netns) => child.stdin?.write(`watch ${netns}\n`),
    forget: (netns) => child.stdin?.write(`forget ${netns}\n`),
    close: () => child.stdin?.end(),
    ended,
  };
}
