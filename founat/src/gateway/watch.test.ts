import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { TransactionCounts } from "../backends/backend.ts";
import { NFT_MONITOR } from "../backends/nft/transactions.ts";
import { runWithFewDescriptors } from "../testing/few-descriptors.ts";
import type { Suspicion } from "./gateway.ts";
import { GatewayWatch } from "./watch.ts";

const EVERYTHING = { elements: true };
const ALL_BUT_ELEMENTS = { elements: false };

const told = { monitor: NFT_MONITOR };

let folder: string;
let fou: Socket;
let stop: AbortController;
let watching: Promise<void>;
let own: TransactionCounts;
let suspicions: Suspicion[];
let warnings: unknown[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gateway-watch-"));
  await Promise.all([monitor("nft"), monitor("ip")]);
  fou = await socketOf(0);
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
  own = { ...told, begun: 3, succeeded: 3 };
  suspicions = [];
  warnings = [];
  // It goes on while a test waits for something, and a test can put it forward.
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
  stop = new AbortController();
  const watch = new GatewayWatch({
    port: fou.address().port,
    ownTransactions: () => own,
    onChange: (where) => suspicions.push(where),
    logger: { debug: () => undefined, info: () => undefined, warn: (what) => warnings.push(what) },
  });
  watching = watch.run(stop.signal);
  await suspected(EVERYTHING); // whatever happened before the monitors listened
});

afterEach(async () => {
  stop.abort();
  await watching;
  vi.useRealTimers();
  fou.close();
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

test("monitors for which there is no file descriptor are started again", () => {
  const program = `
    import { closeSync, openSync } from "node:fs";
    import { GatewayWatch } from ${JSON.stringify(join(import.meta.dirname, "watch.ts"))};
    const ownTransactions = () => ({ begun: 0, succeeded: 0 });
    const stop = new AbortController();
    const reasons = [];
    const warn = ({ reason }) => reasons.push(reason);
    const onChange = () => stop.abort();
    const watch = new GatewayWatch({ port: 5555, ownTransactions, onChange, logger: { warn, debug() {}, info() {} } });
    const files = [];
    try { for (;;) files.push(openSync("/dev/null")); } catch {}
    const watching = watch.run(stop.signal);
    setTimeout(() => files.forEach(closeSync), 100);
    await watching;
    console.log(reasons.join());`;
  expect(runWithFewDescriptors(program)).toBe("Error: spawn ip EMFILE\n");
});

test("a transaction more than the gateway has begun makes all elements suspect, its own do not", async () => {
  own = { ...told, begun: 4, succeeded: 3 };
  await tells("nft", "# new generation 5 by process 1 (nft)");
  own = { ...told, begun: 4, succeeded: 4 };
  await tells("ip", "3: eth0: <UP> mtu 1300");
  await suspected(ALL_BUT_ELEMENTS);
  await tells("nft", "# new generation 6 by process 1 (nft)");
  await suspected(EVERYTHING);
});

test("another's transaction does not count in the place of one that has failed, or was not heard of", async () => {
  own = { ...told, begun: 4, succeeded: 3 };
  await tells("nft", "# new generation 5 by process 1 (nft)");
  own = { ...told, begun: 3, succeeded: 3 };
  await suspected(EVERYTHING);
  own = { ...told, begun: 4, succeeded: 4 };
  await suspected(EVERYTHING);
});

test("a monitor that has lost notifications is exchanged, and all elements are suspect then", async () => {
  await tells("nft", "# ERROR: We lost some netlink events!");
  await suspected(EVERYTHING);
  expect(warnings).toEqual([]);
});

test("a monitor that ends is started again, and what it may have missed is looked for", async () => {
  await monitor("nft", "exit 1");
  await tells("nft", "# ERROR: We lost some netlink events!");
  await vi.waitFor(() => expect(warnings).not.toEqual([]));
  await monitor("nft");
  await suspected(EVERYTHING);
});

test("a socket of the tunnel's port that somebody has made anew is seen", async () => {
  await vi.waitFor(async () => expect(await programOf("ip")).toBe("tail\n"));
  vi.advanceTimersByTime(1_500); // the monitor of `ip` is greeted by then
  suspicions = [];
  const { port } = fou.address();
  fou.close();
  await once(fou, "close");
  fou = await socketOf(port);
  await suspected(ALL_BUT_ELEMENTS);
});

test("where nothing tells of transactions, all is suspect every few seconds, until something does", async () => {
  own = { begun: 0, succeeded: 0 };
  for (let rounds = 0; rounds < 2; rounds += 1) {
    suspicions = [];
    vi.advanceTimersByTime(6_000);
    expect(suspicions).toContainEqual(EVERYTHING);
  }
  vi.advanceTimersByTime(1_500);
  await vi.waitFor(async () => expect(await programOf("ip")).toBe("tail\n"));
  expect(warnings).toEqual([]);
  await tells("nft", "# new generation 5 by process 1 (nft)");
  own = { ...told, begun: 0, succeeded: 0 };
  await suspected(EVERYTHING);
});

/** What stands for a FoU port: to the kernel it is a UDP socket, too. */
async function socketOf(port: number): Promise<Socket> {
  const socket = createSocket("udp4").bind(port, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}

/** Waits for a suspicion; the monitor of `ip` may be greeted at any time. */
async function suspected(where: Suspicion): Promise<void> {
  await vi.waitFor(() => expect(suspicions).toContainEqual(where));
  if (!where.elements) expect(suspicions).not.toContainEqual(EVERYTHING);
  suspicions = [];
}

/** What a monitor's process executes: `tail`, once it listens (proc_pid_comm(5)). */
async function programOf(file: string): Promise<string> {
  const pid = await readFile(join(folder, `${file}.pid`), "utf8");
  return readFile(`/proc/${pid.trim()}/comm`, "utf8");
}

function tells(file: string, line: string): Promise<void> {
  return appendFile(join(folder, `${file}.lines`), `${line}\n`);
}

/**
 * Puts a program in the place of a monitor that joins a group of netlink as that does, and prints what it is told from its
 * start on.
 */
async function monitor(file: string, first = ""): Promise<void> {
  const lines = join(folder, `${file}.lines`);
  const listen = `$^F = 9; socket(S, 16, 3, 0); bind(S, pack("SSLL", 16, 0, 0, 1)); exec @ARGV`;
  const begin = [first, `echo $$ >${join(folder, file)}.pid`, `: >${lines}`];
  const script = ["#!/bin/sh", ...begin, `exec perl -e '${listen}' tail -n +1 -f ${lines}`, ""];
  await writeFile(join(folder, file), script.join("\n"), { mode: 0o755 });
}
