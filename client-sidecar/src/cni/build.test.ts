import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { closeBackdoors, compilePlugin } from "./build.ts";

const OF_BYTECODE = ["DIGEST_OUT", "ORDER_OUT", "ORDER_NAMES_OUT"].map((name) => `BUN_BYTECODE_${name}`);

describe("the compiled plugin", () => {
  let folder: string;
  let plugin: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "egress-nat-build-"));
    plugin = join(folder, "egress-nat");
    await compilePlugin({ outfile: plugin });
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("runs as a CNI plugin", async () => {
    expect(JSON.parse(await run({ CNI_COMMAND: "VERSION" }))).toMatchObject({ cniVersion: "1.1.0" });
  });

  it("does not turn into Bun when the environment says so", async () => {
    const output = await run({ CNI_COMMAND: "VERSION", BUN_BE_BUN: "1" }, ["-p", "'I am Bun'"]);
    expect(JSON.parse(output)).toMatchObject({ cniVersion: "1.1.0" });
  });

  it("preloads nothing that the environment names", async () => {
    const preload = join(import.meta.dirname, "../testing/intruder.ts");
    expect(await run({ CNI_COMMAND: "VERSION", BUN_OPTIONS: `--preload=${preload}` })).not.toMatch(
      /intruder/,
    );
  });

  it("writes no file that the environment names", async () => {
    const file = join(folder, "bytecode");
    for (const name of OF_BYTECODE) await run({ CNI_COMMAND: "VERSION", [name]: file });
    expect(existsSync(file)).toBe(false);
  });

  it("does not mention the variables, while the Bun that it is made of does", () => {
    const executable = readFileSync(plugin);
    for (const name of ["BUN_BE_BUN", "BUN_OPTIONS", ...OF_BYTECODE])
      expect(executable.includes(name)).toBe(false);
    expect(() => closeBackdoors(executable)).toThrow(/does not mention BUN_BE_BUN/);
  });

  it("is one thread when it reads its configuration: no compiler pays in ten milliseconds", async () => {
    const child = spawn(plugin, { env: { CNI_COMMAND: "VERSION" }, stdio: ["pipe", "ignore", "inherit"] });
    const proc = `/proc/${child.pid}`;
    const onStdin = /^\d+ 0x0 /;
    await vi.waitFor(() => expect(readFileSync(`${proc}/syscall`, "utf8")).toMatch(onStdin));
    expect(readdirSync(`${proc}/task`)).toHaveLength(1);
    child.stdin.end();
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  it("holds no schema library", () => {
    expect(readFileSync(plugin).includes("ZodError")).toBe(false);
  });

  function run(environment: Record<string, string>, args: readonly string[] = []): Promise<string> {
    return new Promise((resolve) => {
      const child = execFile(plugin, args, { env: environment }, (_error, stdout) => resolve(stdout));
      child.stdin?.end();
    });
  }
});
