import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test, vi } from "vitest";

// Each test starts a process, and machines that run tests may be slow.
vi.setConfig({ testTimeout: 60_000 });

const COMMAND = `
  import { Cleanup, interruptible } from ${JSON.stringify(join(import.meta.dirname, "cleanup.ts"))};

  const [duration, failing] = process.argv.slice(1);
  const cleanup = (name) =>
    new Cleanup(async () => {
      console.log(name + " is taken away");
      if (name === failing) throw new Error(name + " stays");
    });
  await interruptible(async () => {
    await using _folder = cleanup("the folder");
    await using _machine = cleanup("the machine");
    {
      await using _program = cleanup("the program");
    }
    console.error("measures");
    await new Promise((resolve) => setTimeout(resolve, duration));
  });
`;
const TAKEN_AWAY = ["the program", "the machine", "the folder"]
  .map((name) => `${name} is taken away\n`)
  .join("");

function start(durationMs: number, failing = "") {
  const node = ["--conditions=source", "--input-type=module", "--eval", COMMAND];
  const child = spawn(process.execPath, [...node, `${durationMs}`, failing]);
  return { child, measures: once(child.stderr, "data"), stdout: text(child.stdout) };
}

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s ends work once what it has made is taken away, the latest first",
  async (signal) => {
    const { child, measures, stdout } = start(600_000);
    await measures;
    const stderr = text(child.stderr);
    child.kill(signal);
    child.kill(signal);
    expect(await stdout).toBe(TAKEN_AWAY);
    expect(await stderr).toContain(`ended by ${signal}`);
    expect(child.exitCode ?? (await once(child, "exit"))[0]).toBe(1);
  },
);

test("what cannot be taken away is said, and keeps nothing else", async () => {
  const { child, measures, stdout } = start(600_000, "the machine");
  await measures;
  const stderr = text(child.stderr);
  child.kill("SIGTERM");
  expect(await stdout).toBe(TAKEN_AWAY);
  expect(await stderr).toContain("the machine stays");
});

test("work that ends by itself has taken all of it away once", async () => {
  expect(await start(0).stdout).toBe(TAKEN_AWAY);
});
