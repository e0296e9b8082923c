import { once } from "node:events";
import fs, { readFileSync, renameSync, writeFileSync } from "node:fs";
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, systemClock } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { installBinary } from "./binary.ts";
import { ConfigurationDirectory } from "./configuration-directory.ts";
import { Contest } from "./contest.ts";
import { Installer } from "./installer.ts";
import { installerMetrics } from "./metrics.ts";
import { installModules } from "./modules.ts";
import type { NodeEvent } from "./node-events.ts";
import { uninstall } from "./uninstall.ts";

const logger = createLogger({ name: "test", level: "silent" });
const EVENTUALLY = { timeout: 30_000 };
const LIST = `{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"bridge"}]}\n`;

let folder: string;
let bin: string;
let conf: string;
let source: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "egress-nat-installer-"));
  [bin, conf] = [join(folder, "bin"), join(folder, "net.d")];
  source = join(folder, "plugin");
  await mkdir(bin);
  await mkdir(conf);
  await writeFile(source, "version 1");
});
afterEach(() => rm(folder, { recursive: true }));

describe("the executable", () => {
  it("is copied where it is missing, changed or of another version, and only then", async () => {
    const target = join(bin, "egress-nat");
    expect(await installBinary(source, target)).toBe(true);
    expect((await stat(target)).mode & 0o777).toBe(0o755);
    expect(await installBinary(source, target)).toBe(false);
    await writeFile(target, "somebody else's");
    expect(await installBinary(source, target)).toBe(true);
    await chmod(target, 0o644);
    expect(await installBinary(source, target)).toBe(true);
    await rm(target);
    expect(await installBinary(source, target)).toBe(true);
    await writeFile(source, "version 2");
    expect(await installBinary(source, target)).toBe(true);
    expect(await readFile(target, "utf8")).toBe("version 2");
    expect(await readdir(bin)).toEqual(["egress-nat"]);
  });

  it("that the image lacks is named", async () => {
    await expect(installBinary(join(folder, "missing"), join(bin, "egress-nat"))).rejects.toThrow(
      /cannot read .*missing/,
    );
  });
});

describe("the configuration", () => {
  it("in use gets the plugin, with its mode, and no other file does", async () => {
    await writeFile(join(conf, "10-pods.conflist"), LIST, { mode: 0o640 });
    await writeFile(join(conf, "20-other.conflist"), LIST);
    const directory = new ConfigurationDirectory(conf);
    expect(directory.insert()).toBe("10-pods.conflist");
    expect(directory.insert()).toBeUndefined();
    expect(await pluginsIn("10-pods.conflist")).toEqual(["bridge", "egress-nat"]);
    expect((await stat(join(conf, "10-pods.conflist"))).mode & 0o777).toBe(0o640);
    expect(await readFile(join(conf, "20-other.conflist"), "utf8")).toBe(LIST);
    expect(directory.remove()).toEqual(["10-pods.conflist"]);
    expect(await readFile(join(conf, "10-pods.conflist"), "utf8")).toBe(LIST);
  });

  it("that is a symbolic link stays one", async () => {
    await writeFile(join(folder, "elsewhere"), LIST);
    await symlink(join(folder, "elsewhere"), join(conf, "10-pods.conflist"));
    new ConfigurationDirectory(conf).insert();
    expect(await pluginsIn("../elsewhere")).toEqual(["bridge", "egress-nat"]);
  });

  it("of a single plugin is replaced by a list, and is back after removal", async () => {
    const single = `{"cniVersion":"0.4.0","name":"pods","type":"ptp"}`;
    await writeFile(join(conf, "10-pods.conf"), single);
    const directory = new ConfigurationDirectory(conf);
    expect(directory.insert()).toBe("10-pods.conflist");
    expect(await pluginsIn("10-pods.conflist")).toEqual(["ptp", "egress-nat"]);
    expect(directory.insert()).toBeUndefined();
    await writeFile(join(conf, "10-pods.conf"), single); // its owner writes it again
    expect(directory.insert()).toBe("10-pods.conflist");
    directory.remove();
    expect(await readdir(conf)).toEqual(["10-pods.conf"]);
    expect(await readFile(join(conf, "10-pods.conf"), "utf8")).toBe(single);
  });

  it("of a single plugin beside a list of the same name is left alone, with a remedy", async () => {
    await writeFile(join(conf, "10-pods.conf"), `{"cniVersion":"0.4.0","name":"pods","type":"ptp"}`);
    await writeFile(join(conf, "10-pods.conflist"), LIST);
    expect(() => new ConfigurationDirectory(conf).insert()).toThrow(
      /make it a \.conflist, or remove the files/,
    );
    expect(await readdir(conf)).toEqual(["10-pods.conf", "10-pods.conflist"]);
  });

  it("of a single plugin is replaced also where the agent was killed while it did so", async () => {
    const single = `{"cniVersion":"0.4.0","name":"pods","type":"ptp"}`;
    await writeFile(join(conf, "10-pods.conf"), single);
    new ConfigurationDirectory(conf).insert();
    const list = await readFile(join(conf, "10-pods.conflist"), "utf8");
    await rename(join(conf, "10-pods.conf.replaced-by-egress-nat"), join(conf, "10-pods.conf"));
    expect(new ConfigurationDirectory(conf).insert()).toBe("10-pods.conflist");
    expect(await readdir(conf)).toEqual(["10-pods.conf.replaced-by-egress-nat", "10-pods.conflist"]);
    expect(await readFile(join(conf, "10-pods.conflist"), "utf8")).toBe(list);
  });

  it("of another program that is broken does not stop removal", async () => {
    await writeFile(join(conf, "10-pods.conflist"), LIST);
    await writeFile(join(conf, "99-broken.conflist"), "{");
    const directory = new ConfigurationDirectory(conf);
    directory.insert();
    expect(directory.remove()).toEqual(["10-pods.conflist"]);
  });
});

describe("the installer", () => {
  let events: NodeEvent[];
  let registry: Registry;

  beforeEach(() => {
    [events, registry] = [[], new Registry()];
  });

  const installerAt = (clock?: Clock) =>
    new Installer({
      installBinary: () => installBinary(source, join(bin, "egress-nat")),
      configuration: new ConfigurationDirectory(conf),
      directories: [bin, conf],
      recordEvent: (event) => events.push(event),
      metrics: installerMetrics(registry),
      logger,
      ...(clock && { clock }),
    });
  const metric = async (name: string) => (await registry.getSingleMetric(name)?.get())?.values[0]?.value;

  it("says on the node that its configuration cannot be joined, and is not ready", async () => {
    const file = join(conf, "10-pods.conflist");
    await writeFile(file, LIST.replace("1.0.0", "0.2.0"));
    const installer = installerAt();
    const ended = new AbortController();
    const running = installer.run(ended.signal);
    const why = /cannot add the plugin to 10-pods\.conflist: its cniVersion 0\.2\.0 is not one of/;
    await vi.waitFor(() => expect(installer.check.reasons[0]).toMatch(why), EVENTUALLY);
    expect(events[0]).toMatchObject({
      type: "Warning",
      reason: "CniPluginNotInstalled",
      message: expect.stringMatching(
        /0\.2\.0.*; clients that start on this node may have no gateway and no guard/,
      ),
    });
    expect(await metric("egress_nat_agent_cni_plugin_in_place")).toBe(0);
    await writeFile(file, LIST);
    await vi.waitFor(() => expect(installer.check.ok).toBe(true), EVENTUALLY);
    expect(await metric("egress_nat_agent_cni_plugin_in_place")).toBe(1);
    ended.abort();
    await running;
  });

  it("names the setting where another program rewrites the configuration without end, and insists less and less", async () => {
    const file = join(conf, "05-cilium.conflist");
    await writeFile(file, LIST);
    new ConfigurationDirectory(conf).insert(); // by an agent before this one
    let time = 0;
    const installer = installerAt({ now: () => time, after: systemClock.after });
    const ended = new AbortController();
    const running = installer.run(ended.signal);
    let rewrites = 0;
    const cilium = setInterval(() => {
      if (!readFileSync(file, "utf8").includes("egress-nat")) return;
      writeFileSync(join(folder, "new"), LIST);
      renameSync(join(folder, "new"), file);
      rewrites += 1;
    }, 2);
    onTestFinished(() => clearInterval(cilium));
    await vi.waitFor(() => expect(events).not.toEqual([]), EVENTUALLY);
    expect(installer.check).toMatchObject({
      ok: false,
      reasons: [expect.stringMatching(/cni\.exclusive=false/)],
    });
    expect(events[0]).toMatchObject({
      type: "Warning",
      reason: "CniPluginTakenOut",
      message: expect.stringMatching(
        /keeps removing the CNI plugin from .*05-cilium\.conflist.*cni-exclusive: "false"/,
      ),
    });
    expect(await metric("egress_nat_agent_cni_rewrites_total")).toBeGreaterThanOrEqual(5);
    expect(await metric("egress_nat_agent_cni_plugin_in_place")).toBe(0);
    await vi.waitFor(() => expect(rewrites).toBeGreaterThanOrEqual(6), EVENTUALLY);
    clearInterval(cilium); // somebody has set it
    await vi.waitFor(
      async () => expect(await pluginsIn("05-cilium.conflist")).toContain("egress-nat"),
      EVENTUALLY,
    );
    expect(installer.check.ok).toBe(false);
    time += 11 * 60_000;
    await writeFile(join(conf, "unrelated"), "");
    await vi.waitFor(() => expect(installer.check.ok).toBe(true), EVENTUALLY);
    ended.abort();
    await running;
  });

  it("does without a watch where the node has no more of them, and says once how to get more", async () => {
    await writeFile(join(conf, "10-pods.conflist"), LIST);
    const { watch } = fs;
    const restore = () => {
      fs.watch = watch;
      syncBuiltinESMExports();
    };
    onTestFinished(restore);
    const tooMany = Object.assign(new Error("EMFILE: too many open files, watch"), { code: "EMFILE" });
    fs.watch = () => {
      throw tooMany;
    };
    syncBuiltinESMExports();
    const warn = vi.spyOn(logger, "warn");
    const hurried: Clock = {
      ...systemClock,
      after: (delayMs, callback) => systemClock.after(delayMs / 100, callback),
    };
    const installer = installerAt(hurried);
    const ended = new AbortController();
    const running = installer.run(ended.signal);
    await vi.waitFor(() => expect(installer.check).toEqual({ ok: true, reasons: [] }), EVENTUALLY);
    await rm(join(bin, "egress-nat"));
    await vi.waitFor(async () => expect(await readdir(bin)).toEqual(["egress-nat"]), EVENTUALLY);
    ended.abort();
    await running;
    expect(warn.mock.calls).toEqual([
      [{ err: tooMany, directories: [bin, conf] }, expect.stringMatching(/fs\.inotify\.max_user_instances/)],
    ]);
    warn.mockRestore();
  });

  it("puts the plugin in place as soon as there is a network, and back when another program rewrites it", async () => {
    const installer = installerAt();
    const ended = new AbortController();
    const running = installer.run(ended.signal);
    await vi.waitFor(
      () => expect(installer.check.reasons[0]).toMatch(/install the cluster's network first/),
      EVENTUALLY,
    );
    await writeFile(join(conf, "10-pods.conflist"), LIST);
    await vi.waitFor(() => expect(installer.check).toEqual({ ok: true, reasons: [] }), EVENTUALLY);
    await writeFile(join(conf, "10-pods.conflist"), LIST);
    await vi.waitFor(
      async () => expect(await pluginsIn("10-pods.conflist")).toEqual(["bridge", "egress-nat"]),
      EVENTUALLY,
    );
    await writeFile(join(conf, "10-pods.conflist"), LIST.replace("1.0.0", "9.0.0"));
    await vi.waitFor(() => expect(installer.check.reasons[0]).toMatch(/cniVersion 9\.0\.0/), EVENTUALLY);
    await writeFile(join(conf, "05-first.conflist"), LIST);
    await vi.waitFor(
      async () => expect(await pluginsIn("05-first.conflist")).toContain("egress-nat"),
      EVENTUALLY,
    );
    await rm(join(bin, "egress-nat"));
    await vi.waitFor(async () => expect(await readdir(bin)).toEqual(["egress-nat"]), EVENTUALLY);
    ended.abort();
    await running;
    expect(await pluginsIn("05-first.conflist")).toContain("egress-nat");
  });
});

describe("a contest about the configuration", () => {
  it("is one that goes on for minutes, and is left alone for ever longer, a minute at most", () => {
    let time = 0;
    const contest = new Contest({ now: () => time, after: () => expect.fail() });
    const pauses = Array.from({ length: 14 }, () => {
      contest.count();
      time += 1_000;
      return contest.pauseMs / 1_000;
    });
    expect(pauses).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    expect(contest.isEndless).toBe(true);
    time += 10 * 60_000;
    expect([contest.isEndless, contest.pauseMs]).toEqual([false, 0]);
  });

  it("is none where a network is upgraded once in a while", () => {
    let time = 0;
    const contest = new Contest({ now: () => time, after: () => expect.fail() });
    for (let count = 0; count < 100; count++) {
      contest.count();
      time += 3 * 60_000;
      expect(contest.isEndless).toBe(false);
    }
  });
});

describe("uninstall", () => {
  it("waits for the agent to end, and then leaves nothing", async () => {
    await writeFile(join(conf, "10-pods.conflist"), LIST);
    const configuration = new ConfigurationDirectory(conf);
    configuration.insert();
    await installBinary(source, join(bin, "egress-nat"));
    const stateDirectories = [join(folder, "run"), join(folder, "lib")];
    for (const directory of stateDirectories) await mkdir(join(directory, "nested"), { recursive: true });
    const socketPath = join(folder, "run/agent.sock");
    const agent = createServer().listen(socketPath);
    const options = {
      socketPath,
      configuration,
      binaryPath: join(bin, "egress-nat"),
      stateDirectories,
      logger,
    };

    const done = uninstall(options, new AbortController().signal);
    await once(agent, "connection"); // it has looked, and found the agent
    expect(await pluginsIn("10-pods.conflist")).toContain("egress-nat");
    agent.close();
    await done;
    await uninstall(options, new AbortController().signal);
    expect(await readFile(join(conf, "10-pods.conflist"), "utf8")).toBe(LIST);
    expect(await readdir(bin)).toEqual([]);
    expect(await readdir(folder)).toEqual(["bin", "net.d", "plugin"]);
  });
});

describe("kernel modules", () => {
  it("that are not there yet are loaded", async () => {
    const loaded: string[] = [];
    const load = async (module: string) => void loaded.push(module);
    await installModules(logger, { load, isLoaded: (module) => module === "fou", hasIpv6: () => true });
    expect(loaded).toEqual(expect.arrayContaining(["fou6", "ipip", "ip6_tunnel", "nf_tables", "nft_masq"]));
    expect(loaded).not.toContain("fou");
  });

  it("that cannot be loaded are all named, with the package that holds them", async () => {
    const load = (module: string) =>
      module.startsWith("fou") ? Promise.reject(new Error(`Module ${module} not found`)) : Promise.resolve();
    await expect(
      installModules(logger, { load, isLoaded: () => false, hasIpv6: () => true }),
    ).rejects.toThrow(/has no fou, fou6: .*linux-image-amd64.*linux-modules-extra.*kernel-modules-extra/);
  });

  it("of IPv6 are left alone where the kernel knows no IPv6", async () => {
    const loaded: string[] = [];
    const load = async (module: string) => void loaded.push(module);
    await installModules(logger, { load, isLoaded: () => false, hasIpv6: () => false });
    expect(loaded).toEqual(expect.arrayContaining(["fou", "ipip", "nf_tables"]));
    expect(loaded).not.toContain("fou6");
    expect(loaded).not.toContain("ip6_tunnel");
  });

  it("of the fast path may be missing", async () => {
    const load = (module: string) =>
      module.includes("flow") ? Promise.reject(new Error(`Module ${module} not found`)) : Promise.resolve();
    await expect(
      installModules(logger, { load, isLoaded: () => false, hasIpv6: () => true }),
    ).resolves.toBeUndefined();
  });

  it("that only gateways with iptables need may be missing, and are named", async () => {
    const load = (module: string) =>
      /^(xt_set|em_)/.test(module)
        ? Promise.reject(new Error(`Module ${module} not found`))
        : Promise.resolve();
    const warn = vi.spyOn(logger, "warn");
    await installModules(logger, { load, isLoaded: () => false, hasIpv6: () => true });
    expect(warn.mock.calls).toEqual([
      [{ modules: ["xt_set", "em_ipset"] }, expect.stringMatching(/natBackend: iptables cannot run/)],
    ]);
    warn.mockRestore();
  });
});

async function pluginsIn(file: string): Promise<string[]> {
  const list: { plugins: { type: string }[] } = JSON.parse(await readFile(join(conf, file), "utf8"));
  return list.plugins.map(({ type }) => type);
}
