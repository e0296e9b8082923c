import { afterEach, expect, test, vi } from "vitest";
import { openShell } from "./shell.ts";

const END = "the-end";

afterEach(() => {
  vi.useRealTimers();
});

test("scripts run one after another in one shell, whatever they print", async () => {
  const shell = openShell("sh", ["-s"]);
  expect(await shell.run("x=$$; seq 100000\n", END)).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^1\n2\n(.|\n)*100000\nthe-end\n$/),
  });
  expect(await shell.run("[ $x = $$ ] && printf same\n", END)).toMatchObject({ stdout: "samethe-end\n" });
  shell.close();
});

test("a script that fails ends the shell, and says why; further ones fail as well", async () => {
  const shell = openShell("sh", ["-s"]);
  const failed = { exitCode: 3, stdout: "done\n", stderr: "why\n" };
  expect(await shell.run("echo done; echo why >&2; exit 3\n", END)).toEqual(failed);
  expect(await shell.run("echo more\n", END)).toMatchObject({ exitCode: 3, stdout: "" });
  shell.close();
});

test("a program that is not there is told", async () => {
  expect(await openShell("no-such-program", []).run("echo more\n", END)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("no-such-program"),
  });
});

test("a script that prints nothing for too long is ended, and that is told; further ones fail as well", async () => {
  const shell = openShell("sh", ["-s"], { silenceMs: 300 });
  expect(await shell.run("echo one; echo why >&2; sleep 600; echo two\n", END)).toEqual({
    stdout: "one\n",
    stderr: "it printed nothing for 0.3 s, and was killed",
    exitCode: undefined,
  });
  expect(await shell.run("echo more\n", END)).toMatchObject({ exitCode: 1, stdout: "" });
});

test("a script may take as long as it likes that goes on printing", async () => {
  const shell = openShell("sh", ["-s"], { silenceMs: 1_000 });
  const slow = "for i in 1 2 3 4; do sleep 0.3; echo $i; done\n";
  expect(await shell.run(slow, END)).toMatchObject({ exitCode: 0 });
  shell.close();
});

test("a shell may wait for a script as long as it likes", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const shell = openShell("sh", ["-s"], { silenceMs: 1_000 });
  expect(await shell.run("echo one\n", END)).toMatchObject({ exitCode: 0 });
  vi.advanceTimersByTime(1_100);
  expect(await shell.run("echo more\n", END)).toMatchObject({ exitCode: 0 });
  shell.close();
});
