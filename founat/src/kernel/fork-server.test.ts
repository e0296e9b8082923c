import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ForkServer } from "./fork-server.ts";
import { kernelInNetns } from "./netns.ts";

let forkServer: ForkServer;
beforeEach(() => {
  forkServer = new ForkServer();
});
afterEach(() => forkServer.close());

test("where there is no such network namespace, that is told", async () => {
  expect(await forkServer.run("/run/netns/nobody", "true", [], "")).toEqual({
    exitCode: 2,
    stdout: "",
    stderr: "cannot enter /run/netns/nobody: No such file or directory\n",
  });
});

/** It takes CAP_SYS_ADMIN. */
const mayEnterNetns = spawnSync("unshare", ["--net", "true"]).status === 0;

describe.runIf(mayEnterNetns)("in a network namespace", () => {
  let holder: ChildProcess;
  let netns: string;
  let inside: string;

  beforeAll(async () => {
    holder = spawn("unshare", ["--net", "sh", "-c", "echo; exec sleep infinity"]);
    if (holder.stdout !== null) await once(holder.stdout, "data");
    netns = `/proc/${holder.pid}/ns/net`;
    inside = await readlink(netns);
  });
  afterAll(() => void holder.kill());

  const sh = (script: string, input = "") => forkServer.run(netns, "sh", ["-c", script], input);

  test("a command runs there", async () => {
    expect(await forkServer.run(netns, "readlink", ["/proc/self/ns/net"], "")).toEqual({
      exitCode: 0,
      stdout: `${inside}\n`,
      stderr: "",
    });
  });

  test("words and input reach it as they are, and so does what it prints", async () => {
    const words = ["", "a b", "$HOME", "new\nline", "ä", ""];
    expect((await forkServer.run(netns, "printf", ["%s|", ...words], "")).stdout).toBe(
      words.map((word) => `${word}|`).join(""),
    );
    const input = "1 2 3\nEOF ä\n".repeat(100_000);
    expect((await forkServer.run(netns, "cat", [], input)).stdout).toBe(input);
    expect((await sh("cat /dev/stdin", "opened again")).stdout).toBe("opened again");
  });

  test("many run at the same time, and each gets its own answer", async () => {
    const numbers = Array.from({ length: 40 }, (_, index) => index);
    const answers = await Promise.all(
      numbers.map((number) => sh(`sleep 0.${number % 5}; echo ${number}; cat`, "x")),
    );
    expect(answers.map(({ stdout }) => stdout)).toEqual(numbers.map((number) => `${number}\nx`));
  });

  test("how a command ends is told", async () => {
    const failed = { exitCode: 3, stdout: "done\n", stderr: "why\n" };
    expect(await sh("echo done; echo why >&2; exit 3")).toEqual(failed);
    expect(await sh("kill -KILL $$")).toMatchObject({
      ...{ exitCode: undefined, stderr: "it was ended by signal 9" },
    });
    expect(await forkServer.run(netns, "echo", ["a\0b"], "")).toMatchObject({ exitCode: undefined });
    expect(await forkServer.run(netns, "no-such-program", [], "")).toMatchObject({
      stderr: "no-such-program: No such file or directory\n",
    });
  });

  test.each([
    ["prints", "print join('|', @ARGV), <STDIN>; warn 'why'; exit 3"],
    ["dies", "use strict; use warnings; my $none; print 'x' . $none;\ndie 'here'"],
    ["dies while it is compiled", "BEGIN { print 'begun'; die 'early' }"],
    ["dies of what the kernel says", "open my $file, '<', '/no such place' or die $!"],
    ["dies of what another says", "system 'sh', '-c', 'exit 5'; $! = 0; die"],
    [
      "asks for no strictness, and sees nothing of others",
      "$one = 1; print $one, $silence_s // 'none', undef . ''",
    ],
    ["ends before it is compiled", "BEGIN { exit 4 } sub start { "],
    ["does something at its end", "END { print 'last' } print 'first'"],
    [
      "has subs that share a variable",
      "use strict; my $one = shift @ARGV; sub one { $one } print one(), shift",
    ],
    ["has subs that share one of its own", "our $one = shift; sub one { shift; $one } print one('x'), shift"],
    ["starts another", "system 'sh', '-c', 'echo $0; readlink /proc/self/ns/net | wc -l'; print $? >> 8"],
  ])("a program in Perl that %s does what it does by itself", async (_, program) => {
    const args = ["-e", program, "--", "a b", "$HOME", ""];
    const { status, stdout, stderr } = spawnSync("perl", args, { input: "given", encoding: "utf8" });
    const byItself = { exitCode: status, stdout, stderr };
    for (const _ of ["compiled", "known"])
      expect(await forkServer.run(netns, "perl", args, "given")).toEqual(byItself);
  });

  test("one that prints nothing for too long is ended with all that it has started, and that is told", async () => {
    const folder = await mkdtemp(join(tmpdir(), "founat-fork-server-"));
    const impatient = new ForkServer({ silenceMs: 2_000 });
    const pid = join(folder, "pid");
    const deaf = `trap '' TERM; echo one; sleep 600 & echo $! > ${pid}; wait; wait`;
    expect(await impatient.run(netns, "sh", ["-c", deaf], "")).toEqual({
      stdout: "one\n",
      stderr: "it printed nothing for 2 s, and was killed",
      exitCode: undefined,
    });
    await untilGone(Number(await readFile(pid, "utf8")));
    const slow = "for i in 1 2 3 4; do sleep 0.7; echo $i; done";
    expect(await impatient.run(netns, "sh", ["-c", slow], "")).toMatchObject({ exitCode: 0 });
    impatient.close();
    await rm(folder, { recursive: true });
  });

  test("one that prints without end is ended, and one whose input is too long is not started", async () => {
    expect(await sh("yes")).toEqual({
      exitCode: undefined,
      stdout: "",
      stderr: "it printed more than 16777216 bytes, and was killed",
    });
    const refused = await forkServer.run(netns, "true", [], "x".repeat(17 * 1024 * 1024));
    expect(refused).toMatchObject({ exitCode: undefined, stderr: "memory file: File too large\n" });
    expect(await sh("echo again")).toMatchObject({ stdout: "again\n" });
  });

  test("whatever a command has started ends with it", async () => {
    const { stdout } = await sh("sleep 600 & echo $!; kill -KILL $$");
    await untilGone(Number(stdout));
  });

  test("where it is killed, those that wait are told, and it is there for the next one", async () => {
    const parent = Number((await sh("echo $PPID")).stdout);
    expect(parent).toBeGreaterThan(1);
    const waiting = sh("echo $$ >&2; sleep 600");
    const [child = 0] = await childrenOf(parent);
    process.kill(parent, "SIGKILL");
    expect(await waiting).toEqual({
      exitCode: undefined,
      stdout: "",
      stderr: "what starts commands has ended: SIGKILL",
    });
    await untilGone(child);
    expect(await sh("echo again")).toMatchObject({ stdout: "again\n" });
  });

  test("where it has stopped, it is killed", async () => {
    const impatient = new ForkServer({ silenceMs: 500 });
    const run = (script: string) => impatient.run(netns, "sh", ["-c", script], "");
    const parent = Number((await run("echo $PPID")).stdout);
    expect(parent).toBeGreaterThan(1);
    process.kill(parent, "SIGSTOP");
    expect(await run("echo on")).toMatchObject({ stderr: "what starts commands has ended: SIGKILL" });
    expect(await run("echo again")).toMatchObject({ stdout: "again\n" });
    impatient.close();
  });

  test("a kernel runs its steps by it", async () => {
    const kernel = kernelInNetns(netns, { forkServer });
    const where = { file: "readlink", args: ["/proc/self/ns/net"] };
    expect(await kernel.run([where, { file: "false", args: [], mayFail: true }, where])).toEqual([
      `${inside}\n`,
      "",
      `${inside}\n`,
    ]);
    await expect(kernel.run([where, { file: "ls", args: ["/no such place"] }])).rejects.toThrow(
      /^`ls \/no such place` failed: ls: .*No such file/,
    );
  });

  async function untilGone(pid: number): Promise<void> {
    expect(pid).toBeGreaterThan(1);
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), { timeout: 5_000 });
  }

  async function childrenOf(pid: number): Promise<number[]> {
    return vi.waitFor(async () => {
      const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim();
      expect(children).not.toBe("");
      return children.split(" ").map(Number);
    });
  }
});
