import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { TransactionCounts, TransactionMonitor } from "../backends/backend.ts";
import type { Logger } from "../logger.ts";
import type { Suspicion } from "./gateway.ts";

/** What tells of changes as they are made: of the packet filter, and of all else. Each line of it is one. */
const MONITORS = ["filter", "ip"] as const;
type Monitor = (typeof MONITORS)[number];
type Program = Pick<TransactionMonitor, "file" | "args"> & Partial<TransactionMonitor>;
const IP_MONITOR: Program = { file: "ip", args: ["monitor", "link", "address", "route", "rule", "netconf"] };

/** Of FoU ports nothing tells; the kernel lists their sockets (proc_pid_net(5)). */
const SOCKETS = ["/proc/self/net/udp", "/proc/self/net/udp6"];

/** A change seldom comes alone. */
const SETTLE_MS = 50;
const TICK_MS = 1_000;
/** What no notification has told, elements apart, is found after this many ticks. */
const TICKS_BETWEEN_COMPARISONS = 30;
/** The same where nothing tells of changes of the packet filter. */
const TICKS_WITHOUT_NEWS = 5;
/** `nft monitor` keeps every element that it has heard of: it is exchanged after so many lines. */
const MAX_LINES = 100_000;

export interface GatewayWatchOptions {
  /** UDP port of the tunnel. */
  readonly port: number;
  /** How often the gateway itself has changed its packet filter, and what tells of all changes. */
  readonly ownTransactions: () => TransactionCounts;
  /** Somebody else may have changed something; called once for changes that come together. */
  readonly onChange: (where: Suspicion) => void;
  readonly logger: Logger;
}

/**
 * Says when the network namespace of this process may have been changed by somebody else. It only says so: what has
 * changed is for a comparison to find ({@link Gateway.check}), which it also asks for now and then, whatever it heard.
 * The gateway's own transactions are told from those of others by their number, because a comparison after each of them
 * would cost as much as there are clients. Elements of sets are compared only when something has told of such a
 * transaction, may have missed one, or where nothing tells of any: then all is compared every few seconds.
 */
export class GatewayWatch {
  readonly #options: GatewayWatchOptions;
  readonly #monitors = new Map<Monitor, ChildProcess>();
  /** Those that have begun to listen. */
  readonly #listening = new Set<Monitor>();
  /** The gateway's own transactions, as far as it was told of them. */
  #seen: number;
  #succeededAtTick: number;
  #sockets: string;
  #ticks = 0;
  #elements = false;
  #settling: NodeJS.Timeout | undefined;

  constructor(options: GatewayWatchOptions) {
    this.#options = options;
    this.#seen = this.#succeededAtTick = options.ownTransactions().succeeded;
    this.#sockets = fouSockets(options.port);
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    this.#startMonitors();
    const timer = setInterval(() => this.#tick(), TICK_MS);
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    clearInterval(timer);
    clearTimeout(this.#settling);
    for (const monitor of this.#monitors.values()) monitor.removeAllListeners("close").kill();
  }

  #startMonitors(): void {
    for (const monitor of MONITORS) {
      const command = this.#commandOf(monitor);
      const running = this.#monitors.get(monitor);
      if (command !== undefined) {
        if (running === undefined) this.#monitors.set(monitor, this.#startMonitor(monitor, command));
      } else if (running !== undefined) {
        running.removeAllListeners("close").kill();
        this.#monitors.delete(monitor);
        this.#listening.delete(monitor);
      }
    }
  }

  #commandOf(monitor: Monitor): Program | undefined {
    return monitor === "ip" ? IP_MONITOR : this.#options.ownTransactions().monitor;
  }

  #startMonitor(monitor: Monitor, { file, args, end, lost }: Program): ChildProcess {
    // Where there is no file descriptor left it has no streams, and only the error says why.
    const child: ChildProcess = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] });
    let rest = "";
    let lines = 0;
    let exchanged = false;
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      const complete = (rest + text).split("\n");
      rest = complete.pop() ?? "";
      lines += complete.length;
      if (end === undefined) this.#suspect({ elements: false });
      else {
        this.#seen += complete.filter((line) => end.test(line)).length;
        this.#compareCounts(0);
      }
      if (lines <= MAX_LINES && !complete.some((line) => lost?.test(line))) return;
      exchanged = true;
      child.kill();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr = text;
    });
    const gone = (reason: string) => {
      if (this.#monitors.get(monitor) !== child) return;
      this.#monitors.delete(monitor);
      this.#listening.delete(monitor);
      if (!exchanged) {
        this.#options.logger.warn(
          { program: file, reason: reason.trim() },
          "monitor has ended, starting again",
        );
      }
    };
    child.once("error", (error) => gone(String(error)));
    child.once("close", () => gone(stderr));
    return child;
  }

  #tick(): void {
    this.#startMonitors();
    this.#greetMonitors();
    this.#compareCounts(this.#succeededAtTick);
    this.#succeededAtTick = this.#options.ownTransactions().succeeded;
    const sockets = fouSockets(this.#options.port);
    if (sockets !== this.#sockets) this.#suspect({ elements: false });
    this.#sockets = sockets;
    this.#ticks += 1;
    const isTold = this.#commandOf("filter") !== undefined;
    if (this.#ticks < (isTold ? TICKS_BETWEEN_COMPARISONS : TICKS_WITHOUT_NEWS)) return;
    this.#ticks = 0;
    this.#suspect({ elements: !this.#listening.has("filter") });
  }

  /** What happened before a monitor listened is found by a comparison: one for both, where they start together. */
  #greetMonitors(): void {
    for (const monitor of MONITORS) {
      const pid = this.#monitors.get(monitor)?.pid;
      if (this.#listening.has(monitor) || this.#commandOf(monitor) === undefined) continue;
      if (pid === undefined || !listens(pid)) return;
      this.#listening.add(monitor);
      const isOfFilter = monitor === "filter";
      if (isOfFilter) this.#seen = this.#succeededAtTick = this.#options.ownTransactions().succeeded;
      this.#suspect({ elements: isOfFilter });
    }
  }

  /**
   * More than the gateway has begun: some are somebody else's. Fewer than `due`: some were missed, and those of somebody
   * else would count in their place.
   */
  #compareCounts(due: number): void {
    const { begun } = this.#options.ownTransactions();
    const expected = Math.min(Math.max(this.#seen, due), begun);
    if (this.#seen === expected) return;
    this.#seen = expected;
    if (this.#listening.has("filter")) this.#suspect({ elements: true });
  }

  #suspect({ elements }: Suspicion): void {
    this.#elements ||= elements;
    this.#settling ??= setTimeout(() => {
      const suspicion = { elements: this.#elements };
      this.#settling = undefined;
      this.#elements = false;
      this.#options.onChange(suspicion);
    }, SETTLE_MS);
  }
}

/** The sockets of the tunnel's port, each with its inode: one that was recreated is another one. */
function fouSockets(port: number): string {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  return SOCKETS.flatMap((path) =>
    readLines(path).flatMap((line) => {
      const [, local = "", , , , , , , , inode] = line.trim().split(/\s+/);
      return local.endsWith(suffix) ? [`${local} ${inode}`] : [];
    }),
  ).join();
}

/** Whether a process has joined a group of netlink: it hears what happens from now on (/proc/net/netlink). */
function listens(pid: number): boolean {
  const folder = `/proc/${pid}/fd`;
  // What the files are that it has open (proc_pid_fd(5)).
  const files = new Set(orNone(() => readdirSync(folder).map((fd) => readlinkSync(`${folder}/${fd}`))));
  return readLines("/proc/self/net/netlink").some((line) => {
    const [, , , groups = "", , , , , , inode] = line.trim().split(/\s+/);
    return Number.parseInt(groups, 16) > 0 && files.has(`socket:[${inode}]`);
  });
}

function readLines(path: string): string[] {
  return orNone(() => readFileSync(path, "utf8").split("\n"));
}

/** Of what has ended, or is not there, none. */
function orNone(read: () => string[]): string[] {
  try {
    return read();
  } catch {
    return [];
  }
}
