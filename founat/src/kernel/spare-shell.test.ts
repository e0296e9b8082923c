import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readlink } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { kernelInNetns } from "./netns.ts";
import { SpareShell } from "./spare-shell.ts";

const END = "the-end";

let spareShell: SpareShell;
beforeEach(() => {
  spareShell = new SpareShell();
});
afterEach(() => spareShell.close());

test("where there is no such network namespace, that is told", async () => {
  const shell = spareShell.take("/run/netns/nobody");
  expect(await shell?.run("echo on\n", END)).toMatchObject({
    exitCode: 2,
    stdout: "",
    stderr: "cannot enter /run/netns/nobody: No such file or directory\n",
  });
});

/** It takes CAP_SYS_ADMIN. */
const mayEnterNetns = spawnSync("unshare", ["--net", "true"]).status === 0;

describe.runIf(mayEnterNetns)("in a network namespace", () => {
  const WHERE = "readlink /proc/self/ns/net";
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

  test("scripts run one after another", async () => {
    const shell = spareShell.take(netns);
    expect(await shell?.run(`x=$$; ${WHERE}\n`, END)).toMatchObject({
      exitCode: 0,
      stdout: `${inside}\n${END}\n`,
    });
    expect(await shell?.run("[ $x = $$ ] && echo same\n", END)).toMatchObject({ stdout: `same\n${END}\n` });
    shell?.close();
  });

  test("it is taken once, and there again a second later", async () => {
    const first = spareShell.take(netns);
    expect(spareShell.take(netns)).toBeUndefined();
    await vi.waitFor(() => expect(spareShell.take(netns)).toBeDefined(), { timeout: 5_000 });
    expect(await first?.run(`${WHERE}\n`, END)).toMatchObject({ stdout: `${inside}\n${END}\n` });
    first?.close();
  });

  test("sessions run whether it is there or not", async () => {
    const kernel = kernelInNetns(netns, { spareShell });
    const look = () => kernel.session((lent) => lent.exec("readlink", ["/proc/self/ns/net"]));
    expect(await Promise.all([look(), look()])).toEqual([`${inside}\n`, `${inside}\n`]);
  });
});
