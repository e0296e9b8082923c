/** Keeps the plugin on the node while the agent runs. Nothing here takes it away: see uninstall.ts. */

import { type FSWatcher, watch } from "node:fs";
import { type Clock, pause } from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import type { ConfigurationDirectory } from "./configuration-directory.ts";
import { Contest } from "./contest.ts";
import { InstallError } from "./error.ts";
import type { InstallerMetrics } from "./metrics.ts";
import type { RecordNodeEvent } from "./node-events.ts";

/** A watch can miss a change (a directory that was replaced, an overflow of inotify's queue). */
const RECHECK_MS = 10_000;

/** An older plugin may be there still, which guards them. */
const MAY_BE_UNGUARDED = "clients that start on this node may have no gateway and no guard";

export interface InstallerOptions {
  /** Puts the executable in its place. @returns whether it had to be */
  readonly installBinary: () => Promise<boolean>;
  readonly configuration: Pick<ConfigurationDirectory, "insert">;
  /** Directories in which another program may undo what was installed. */
  readonly directories: readonly string[];
  readonly recordEvent: RecordNodeEvent;
  readonly metrics: InstallerMetrics;
  readonly logger: Logger;
  readonly clock?: Clock;
}

/** Puts the plugin in place, and puts it back whenever another program rewrites the configuration. */
export class Installer {
  readonly #options: InstallerOptions;
  readonly #contest: Contest;
  #hasBeenInPlace = false;
  #check: Check = { ok: false, reasons: ["the CNI plugin is not installed yet"] };
  #changed = new AbortController();

  constructor(options: InstallerOptions) {
    this.#options = options;
    this.#contest = new Contest(options.clock);
  }

  /** Whether the plugin was in place when last looked at, and is left there. */
  get check(): Check {
    return this.#check;
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const watchers = this.#watchAll();
    try {
      while (!signal.aborted) {
        this.#changed = new AbortController();
        await this.#install();
        await pause(this.#contest.pauseMs, signal, clock);
        await pause(RECHECK_MS, AbortSignal.any([signal, this.#changed.signal]), clock);
      }
    } finally {
      for (const watcher of watchers) watcher.close();
    }
  }

  async #install(): Promise<void> {
    const { installBinary, configuration, metrics, logger } = this.#options;
    try {
      // In this order: a runtime must never find the name of a plugin that is not there.
      if (await installBinary()) logger.info("installed the CNI plugin");
      const file = configuration.insert();
      if (file !== undefined) this.#sayInserted(file);
      this.#hasBeenInPlace = true;
      if (!this.#contest.isEndless) this.#check = { ok: true, reasons: [] };
    } catch (err) {
      this.#sayMissing(err);
    }
    metrics.inPlace.set(this.#check.ok ? 1 : 0);
  }

  #sayInserted(file: string): void {
    const { recordEvent, metrics, logger } = this.#options;
    if (!this.#hasBeenInPlace) {
      logger.info({ file }, "inserted the CNI plugin into the node's configuration");
      return;
    }
    this.#contest.count();
    metrics.rewrites.inc();
    logger.warn(
      { file },
      "inserted the CNI plugin again after another program had removed it: pods that started in between have no " +
        "gateway and no guard, whatever their annotations say; create them again",
    );
    if (!this.#contest.isEndless) return;
    const message =
      `another program keeps removing the CNI plugin from ${file}: clients that start in between have ` +
      "no gateway and no guard. Configure that program to leave the file alone: " +
      'for Cilium, set its Helm value cni.exclusive=false (in its ConfigMap cni-exclusive: "false")';
    recordEvent({ type: "Warning", reason: "CniPluginTakenOut", message });
    this.#check = { ok: false, reasons: [message] };
  }

  #sayMissing(err: unknown): void {
    const { recordEvent, logger } = this.#options;
    const message = err instanceof Error ? err.message : String(err);
    if (this.#check.reasons[0] !== message) logger.error({ err }, "cannot install the CNI plugin");
    this.#check = { ok: false, reasons: [message] };
    // Kubelet says it of a node that has no network yet, and no pod starts there.
    if (err instanceof InstallError && err.code === "no-configuration") return;
    recordEvent({
      type: "Warning",
      reason: "CniPluginNotInstalled",
      message: `${message}; ${MAY_BE_UNGUARDED}`,
    });
  }

  /** Where there can be no watch the recheck is enough: all programs of the node's root share the limits of inotify(7). */
  #watchAll(): readonly FSWatcher[] {
    const { directories, logger } = this.#options;
    const failures = new Map<string, unknown>();
    const watchers = directories.flatMap((directory) => {
      try {
        return this.#watch(directory);
      } catch (err) {
        failures.set(directory, err);
        return [];
      }
    });
    const [err] = failures.values();
    if (err !== undefined) {
      logger.warn(
        { err, directories: [...failures.keys()] },
        "cannot watch directories, looking at them every 10 s instead: if the error is EMFILE, raise the node's sysctl " +
          "fs.inotify.max_user_instances, if it is ENOSPC, fs.inotify.max_user_watches",
      );
    }
    return watchers;
  }

  #watch(directory: string): FSWatcher {
    const watcher = watch(directory, () => this.#changed.abort());
    watcher.on("error", (err) => this.#options.logger.warn({ err, directory }, "watch failed"));
    return watcher;
  }
}
