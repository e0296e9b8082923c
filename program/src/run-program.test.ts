import { spawn } from "node:child_process";
import { join } from "node:path";
import { expect, test, vi } from "vitest";

// Each test starts a process, and machines that run tests may be slow.
vi.setConfig({ testTimeout: 60_000 });

interface End {
  readonly code: number | null;
  readonly lines: readonly Record<string, unknown>[];
}

/** Runs a program that is given by its body, and signals it as often as it says "ready". */
function run(body: string, signals: readonly NodeJS.Signals[] = []): Promise<End> {
  const source = `
    import { ConfigurationError, runProgram } from ${JSON.stringify(join(import.meta.dirname, "index.ts"))};
    const aborted = (signal) => new Promise((resolve) => signal.addEventListener("abort", resolve));
    const ready = () => process.stdout.write("ready\\n");
    setInterval(() => {}, 60_000);
    await runProgram("gardener", async ({ signal, logger }) => { ${body} });
  `;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", source]);
  const remaining = [...signals];
  let log = "";
  child.stdout.on("data", () => {
    const signal = remaining.shift();
    if (signal) child.kill(signal);
  });
  child.stderr.on("data", (chunk) => {
    log += chunk;
  });
  const { promise, resolve } = Promise.withResolvers<End>();
  child.on("close", (code) => {
    resolve({ code, lines: log.trim().split("\n").map(parseLine) });
  });
  return promise;
}

function parseLine(line: string): Record<string, unknown> {
  return line.startsWith("{") ? JSON.parse(line) : { msg: line };
}

const last = ({ lines }: End) => lines.at(-1);

test("a program that returns has succeeded, whatever a library left running", async () => {
  const end = await run(`logger.info({ beds: 3 }, "working");`);
  expect(end.code).toBe(0);
  expect(end.lines.map(({ msg }) => msg)).toEqual(["starting", "working", "stopped"]);
  expect(end.lines[1]).toMatchObject({ level: "info", name: "gardener", beds: 3 });
});

test.each<NodeJS.Signals>(["SIGTERM", "SIGINT"])(
  "%s lets a program finish what it has begun",
  async (signal) => {
    const end = await run(`ready(); await aborted(signal); logger.info({}, "tidy");`, [signal]);
    expect(end.code).toBe(0);
    expect(end.lines.map(({ msg }) => msg)).toEqual(["starting", "stopping", "tidy", "stopped"]);
  },
);

test("a program may let its signal's reason through", async () => {
  const end = await run(`ready(); await aborted(signal); signal.throwIfAborted();`, ["SIGTERM"]);
  expect([end.code, last(end)?.msg]).toEqual([0, "stopped"]);
});

test("a second SIGINT ends a program that does not", async () => {
  const end = await run(`signal.addEventListener("abort", ready); ready(); await new Promise(() => {});`, [
    "SIGINT",
    "SIGINT",
  ]);
  expect(end.code).toBe(130);
});

test("a second SIGTERM is the same wish: a runtime that was restarted sends it again", async () => {
  const body = `
    const { promise: twice, resolve } = Promise.withResolvers();
    let times = 0;
    process.on("SIGTERM", () => (++times < 2 ? ready() : resolve()));
    ready();
    await twice;
    logger.info({}, "tidy");`;
  const end = await run(body, ["SIGTERM", "SIGTERM"]);
  expect([end.code, end.lines.at(-2)?.msg]).toEqual([0, "tidy"]);
});

test("a wrong configuration has its own exit code and says what to do", async () => {
  const end = await run(`throw new ConfigurationError("set NODE_NAME");`);
  expect([end.code, last(end)?.msg]).toEqual([78, "set NODE_NAME"]);
});

test("a failure is logged with its error", async () => {
  const end = await run(`throw new Error("no water");`);
  expect(end.code).toBe(70);
  expect(last(end)).toMatchObject({ level: "fatal", msg: "failed", err: { message: "no water" } });
});

test("an error that nobody caught ends the program", async () => {
  const end = await run(`Promise.reject(new Error("forgotten")); await new Promise(() => {});`);
  expect(end.code).toBe(70);
  expect(last(end)).toMatchObject({ msg: "uncaught error", err: { message: "forgotten" } });
});
