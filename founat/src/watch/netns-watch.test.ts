import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { runWithFewDescriptors } from "../testing/few-descriptors.ts";
import { type NetnsWatch, openNetnsWatch } from "./netns-watch.ts";

const untold = { onChange: () => undefined, onRefused: () => undefined, onLost: () => undefined };

test("a namespace that is not there is lost, and the watch goes on until it is closed", async () => {
  const lost: string[] = [];
  const watch = openNetnsWatch({
    ...untold,
    onLost: (...words) => lost.push(words.join(": ")),
  });
  watch.watch("/run/netns/nobody");
  await vi.waitFor(() => expect(lost).toEqual(["/run/netns/nobody: No such file or directory"]));
  watch.forget("/run/netns/nobody");
  watch.watch("/etc/hostname");
  await vi.waitFor(() => expect(lost).toHaveLength(2));
  expect(lost[1]).toMatch(/^\/etc\/hostname: (Invalid argument|Operation not permitted)$/);
  watch.close();
  expect(await watch.ended).toBe("ended by code 0");
});

test("a watch that cannot be started says why", async () => {
  vi.stubEnv("PATH", "/nowhere");
  const watch = openNetnsWatch(untold);
  vi.unstubAllEnvs();
  watch.watch("/run/netns/nobody");
  expect(await watch.ended).toContain("spawn perl ENOENT");
});

test("one that finds no file descriptor left does so as well", () => {
  const program = `
    import { openSync } from "node:fs";
    import { openNetnsWatch } from ${JSON.stringify(join(import.meta.dirname, "netns-watch.ts"))};
    try { for (;;) openSync("/dev/null"); } catch {}
    const watch = openNetnsWatch({});
    watch.watch("/run/netns/nobody");
    watch.close();
    console.log(await watch.ended);`;
  expect(runWithFewDescriptors(program)).toContain("spawn perl EMFILE");
});

/** It takes CAP_SYS_ADMIN. */
const mayEnterNetns = spawnSync("unshare", ["--net", "true"]).status === 0;

describe.runIf(mayEnterNetns)("of a network namespace", () => {
  let folder: string;
  let sysctl: string;
  let told: string[];
  let watch: NetnsWatch;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "netns-watch-"));
    sysctl = join(folder, "sys/net/ipv4/conf/eth0/rp_filter");
    await mkdir(dirname(sysctl), { recursive: true });
    await writeFile(sysctl, "0\n");
    told = [];
    watch = openNetnsWatch({
      ...untold,
      onChange: (netns) => told.push(basename(netns)),
      onLost: (...words) => told.push(words.join(": ")),
      sysctlRoot: join(folder, "sys"),
    });
  });

  afterEach(async () => {
    watch.close();
    await watch.ended;
    await rm(folder, { recursive: true });
  });

  /** Watches an empty namespace by as many names, and waits until it is told of each. @returns its file */
  async function watchBy(...names: readonly string[]): Promise<string> {
    const holder = spawn("unshare", ["--net", "sh", "-c", "echo; exec sleep infinity"]);
    onTestFinished(() => void holder.kill());
    await once(holder.stdout, "data");
    const namespace = `/proc/${holder.pid}/ns/net`;
    for (const name of names) {
      await symlink(namespace, join(folder, name));
      watch.watch(join(folder, name));
    }
    await vi.waitFor(() => expect(told).toEqual(expect.arrayContaining([...names])), { timeout: 30_000 });
    return namespace;
  }

  const eight = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

  test("in which nothing changes, it is told once", async () => {
    await watchBy(...eight);
    // Two more rounds of the watch; the second ends the first. The sysctls of c7 are read in it.
    await watchBy("next");
    await watchBy("last");
    expect(told.filter((name) => eight.includes(name)).sort()).toEqual(eight);
  });

  test("a sysctl that changes after it was told is told as well", async () => {
    await watchBy(...eight);
    await writeFile(sysctl, "2\n");
    // Theirs are read next: it takes the watch eight seconds to read everybody's.
    const again = ["c6", "c7"].flatMap((name) => [name, name]);
    await vi.waitFor(() => expect(told.filter((name) => again.includes(name)).sort()).toEqual(again), {
      timeout: 30_000,
    });
  });

  test("a sysctl that comes with a link is told after the link", async () => {
    const namespace = await watchBy(...eight);
    told = [];
    const late = join(folder, "sys/net/ipv4/conf/late0/rp_filter");
    await mkdir(dirname(late));
    await writeFile(late, "0\n");
    spawnSync("nsenter", [`--net=${namespace}`, "ip", "link", "set", "lo", "mtu", "9000"]);
    await vi.waitFor(() => expect(new Set(told).size).toBe(8), { timeout: 30_000 });
    // Theirs are read in the seconds after.
    await vi.waitFor(() => expect(told.length).toBeGreaterThanOrEqual(10), { timeout: 30_000 });
  });
});
