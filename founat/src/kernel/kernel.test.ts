import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { kernelHere } from "./kernel.ts";

let sysctlRoot: string;
beforeEach(async () => {
  sysctlRoot = await mkdtemp(join(tmpdir(), "founat-sysctl-"));
  await mkdir(join(sysctlRoot, "net/ipv4/conf/eth0.5"), { recursive: true });
});
afterEach(() => rm(sysctlRoot, { recursive: true }));

test("a command gets its input and arguments as they are, whatever they hold", async () => {
  const words = ["a b", "it's", '"$HOME"', "`id`", "back\\slash", "new\nline"];
  expect(await kernelHere().exec("printf", ["%s|", ...words])).toBe(words.map((word) => `${word}|`).join(""));
  const input = "EOF\n$HOME `id`\n".repeat(20_000);
  expect(await kernelHere().exec("cat", [], { input })).toBe(input);
});

test("each step's output comes back on its own", async () => {
  const outputs = await kernelHere().run([
    { file: "echo", args: ["one"] },
    { file: "true", args: [] },
    { file: "false", args: [], mayFail: true },
    { file: "echo", args: ["two"] },
  ]);
  expect(outputs).toEqual(["one\n", "", "", "two\n"]);
});

test("a command is run only where the sysctl exists that it is for", async () => {
  await writeFile(join(sysctlRoot, "net/ipv4/conf/eth0.5/rp_filter"), "2\n");
  const kernel = kernelHere({ sysctlRoot });
  const there = { file: "cat", args: [], input: "x", ifSysctl: "net/ipv4/conf/eth0.5/rp_filter" };
  const absent = { ...there, ifSysctl: "net/ipv6/conf/all/disable_ipv6" };
  expect(await kernel.run([there])).toEqual(["x\n"]);
  expect(await kernel.run([absent])).toEqual([""]);
  expect(await kernel.run([absent, there])).toEqual(["", "x\n"]);
});

test("what is read comes back in the order it was asked for", async () => {
  await writeFile(join(sysctlRoot, "net/ipv4/conf/eth0.5/rp_filter"), "2\n");
  const outputs = await kernelHere({ sysctlRoot }).read([
    { file: "sh", args: ["-c", "sleep 0.1; echo slow"] },
    { file: "echo", args: ["fast"] },
    { read: ["net/ipv4/conf/eth0.5/rp_filter"] },
  ]);
  expect(outputs).toEqual(["slow\n", "fast\n", "net/ipv4/conf/eth0.5/rp_filter:2\n"]);
});

test("the first failure ends the run, and its message names the command and what it said", async () => {
  const after = join(sysctlRoot, "after");
  const run = kernelHere().run([
    { file: "true", args: [] },
    { file: "ls", args: ["/no such place"] },
    { file: "touch", args: [after] },
  ]);
  await expect(run).rejects.toMatchObject({
    code: "kernel-command-failed",
    retryable: true,
    message: expect.stringMatching(/^`ls \/no such place` failed: ls: .*No such file/),
  });
  await expect(readFile(after)).rejects.toThrow("ENOENT");
});

test("a command alone is told in the same words when it fails", async () => {
  await expect(kernelHere().exec("ls", ["/no such place"])).rejects.toMatchObject({
    code: "kernel-command-failed",
    message: expect.stringMatching(/^`ls \/no such place` failed: ls: .*No such file/),
  });
  expect(await kernelHere().run([{ file: "false", args: [], mayFail: true }])).toEqual([""]);
});

test("a program that is not there is a failure of the command", async () => {
  await expect(kernelHere().exec("no-such-program", [])).rejects.toThrow("`no-such-program` failed: ");
});

test("sysctls are written and read below the given root; those that do not exist are left out", async () => {
  const path = "net/ipv4/conf/eth0.5/rp_filter";
  await writeFile(join(sysctlRoot, path), "0\n");
  const kernel = kernelHere({ sysctlRoot });
  await kernel.run([{ sysctls: { [path]: "2" } }]);
  expect(await readFile(join(sysctlRoot, path), "utf8")).toBe("2");
  expect(await kernel.readSysctls([path, "net/core/txrehash"])).toEqual(new Map([[path, "2"]]));
});

test("which sysctls there are is told without their values", async () => {
  const [there, absent] = ["net/ipv4/conf/eth0.5/rp_filter", "net/core/txrehash"];
  await writeFile(join(sysctlRoot, there), "0\n");
  const kernel = kernelHere({ sysctlRoot });
  expect(await kernel.run([{ read: [absent, there], presenceOnly: true }])).toEqual([`${there}:\n`]);
  expect(await kernel.run([{ read: [absent], presenceOnly: true }])).toEqual([""]);
});

test("a sysctl that cannot be written is named", async () => {
  const run = kernelHere({ sysctlRoot }).run([{ sysctls: { "net/nowhere/x": "1" } }]);
  await expect(run).rejects.toThrow("writing sysctls net/nowhere/x failed: ");
});

test("a command that somebody kills is no answer, not even where its failure would be one", async () => {
  const killed = { file: "sh", args: ["-c", "kill -KILL $$"], mayFail: true };
  await expect(kernelHere().run([killed])).rejects.toMatchObject({
    ...{ code: "kernel-command-killed", retryable: true },
    message: "`sh -c kill -KILL $$` failed: it was ended by SIGKILL",
  });
  const after = { file: "echo", args: ["more"] };
  await expect(kernelHere().run([killed, after])).rejects.toMatchObject({ code: "kernel-command-failed" });
  expect(await kernelHere().run([{ file: "no-such-program", args: [], mayFail: true }])).toEqual([""]);
});

describe("a command that does not end", () => {
  const kernel = kernelHere({ silenceMs: 500 });
  const hanging = { file: "sleep", args: ["600"] };
  const failure = {
    code: "kernel-command-killed",
    retryable: true,
    message: "`sleep 600` failed: it printed nothing for 0.5 s, and was killed",
  };

  test("is killed after the limit, and its message names both; the next one starts anew", async () => {
    await expect(kernel.run([hanging])).rejects.toMatchObject(failure);
    expect(await kernel.exec("echo", ["again"])).toBe("again\n");
  });

  test("is no answer, not even where its failure would be one", async () => {
    await expect(kernel.run([{ ...hanging, mayFail: true }])).rejects.toMatchObject(failure);
    await expect(
      kernel.run([
        { ...hanging, mayFail: true },
        { file: "true", args: [] },
      ]),
    ).rejects.toMatchObject(failure);
  });

  test("ends the run, none of which goes on, and is the one that is named", async () => {
    const [pid, after] = [join(sysctlRoot, "pid"), join(sysctlRoot, "after")];
    const run = kernel.run([
      { file: "echo", args: ["one"] },
      { file: "sh", args: ["-c", `echo $$ > ${pid}; exec sleep 600`], mayFail: true },
      { file: "touch", args: [after] },
    ]);
    await expect(run).rejects.toThrow(/^`sh -c echo .* exec sleep 600` failed: it printed nothing for 0.5 s/);
    await untilGone(Number(await readFile(pid, "utf8")));
    await expect(readFile(after)).rejects.toThrow("ENOENT");
  });

  test("is killed though it does not listen", async () => {
    const pid = join(sysctlRoot, "pid");
    const deaf = { file: "sh", args: ["-c", `trap '' TERM; echo $$ > ${pid}; exec sleep 600`] };
    await expect(kernel.run([deaf])).rejects.toMatchObject({ code: "kernel-command-killed" });
    await untilGone(Number(await readFile(pid, "utf8")));
  });

  test("is killed sooner where it prints without end", async () => {
    await expect(kernelHere().exec("yes", [])).rejects.toMatchObject({
      code: "kernel-command-killed",
      message: expect.stringMatching(/^`yes` failed: it printed more than \d+ characters, and was killed$/),
    });
  });

  test("is waited for by nobody else", async () => {
    const runs = [1, 2, 3, 4].map(() => expect(kernel.run([hanging])).rejects.toMatchObject(failure));
    expect(await kernel.exec("echo", ["me"])).toBe("me\n");
    await Promise.all(runs);
  });

  async function untilGone(pid: number): Promise<void> {
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), { timeout: 5_000 });
  }
});
