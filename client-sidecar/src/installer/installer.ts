/** Keeps the plugin on the node while the agent runs. Nothing here takes it away: see uninstall.ts. */

import { type FSWatcher, watch } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { Check, Logger } from "@egress-nat/program";
import type { Binary } from "./binary.ts";
import type { ConfigurationDirectory } from "./configuration-directory.ts";

/** A watch can miss a change (a directory that was replaced, an overflow of inotify's queue). */
const RECHECK_MS = 10_000;

export interface InstallerOptions {
  readonly binary: Pick<Binary, "install">;
  readonly configuration: Pick<ConfigurationDirectory, "insert">;
  /** Directories in which another program may undo what was installed. */
  readonly directories: readonly string[];
  readonly logger: Logger;
}

/** Puts the plugin in place, and puts it back whenever another program rewrites the configuration. */
export class Installer {
  readonly #options: InstallerOptions;
  #check: Check = { ok: false, reasons: ["the CNI plugin is not installed yet"] };
  #changed = Promise.withResolvers<void>();

  constructor(options: InstallerOptions) {
    this.#options = options;
  }

  /** Whether the plugin was in place when last looked at. */
  get check(): Check {
    return this.#check;
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const watchers = this.#options.directories.map((directory) => this.#watch(directory));
    try {
      while (!signal.aborted) {
        this.#changed = Promise.withResolvers<void>();
        await this.#install();
        const timer = new AbortController();
        await Promise.race([
          this.#changed.promise,
          pause(RECHECK_MS, undefined, { signal: AbortSignal.any([signal, timer.signal]) }).catch(
            () => undefined,
          ),
        ]);
        timer.abort();
      }
    } finally {
      for (const watcher of watchers) watcher.close();
    }
  }

  async #install(): Promise<void> {
    const { binary, configuration, logger } = this.#options;
    try {
      // In this order: a runtime must never find the name of a plugin that is not there.
      if (await binary.install()) logger.info("installed the CNI plugin");
      const file = configuration.insert();
      if (file !== undefined && this.#check.ok) {
        logger.warn(
          { file },
          "inserted the CNI plugin again after another program had taken it out: pods that started in between have no " +
            "gateway and no guard, whatever their annotations say; start them anew",
        );
      } else if (file !== undefined) {
        logger.info({ file }, "inserted the CNI plugin into the node's configuration");
      }
      this.#check = { ok: true, reasons: [] };
    } catch (err) {
      const message = err instanceof Error ? err.message : String(err);
      if (this.#check.reasons[0] !== message) logger.error({ err }, "cannot install the CNI plugin");
      this.#check = { ok: false, reasons: [message] };
    }
  }

  #watch(directory: string): FSWatcher {
    const watcher = watch(directory, () => this.#changed.resolve());
    watcher.on("error", (err) => this.#options.logger.warn({ err, directory }, "watch failed"));
    return watcher;
  }
}
