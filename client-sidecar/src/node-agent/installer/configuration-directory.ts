/** The node's directory of CNI configurations, with the plugin put into it or taken out of it. */

import { readdirSync, readFileSync, realpathSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { CNI_PLUGIN } from "@egress-nat/crds/names";
import { syncDirectory, writeFileAtomically } from "../../records/atomic-file.ts";
import { configurationInUse, insertPlugin, listOfOne, removePlugin } from "./conflist.ts";
import { InstallError } from "./error.ts";

/** What a single configuration is renamed to while a list made from it is used in its place; no runtime reads it. */
const REPLACED_SUFFIX = ".replaced-by-egress-nat";

/** Puts the plugin into the configuration that the container runtime uses, and takes it out again. */
export class ConfigurationDirectory {
  readonly #path: string;

  /** @param path /etc/cni/net.d of the node, as this process sees it */
  constructor(path: string) {
    this.#path = path;
  }

  /**
   * @returns the file that was changed; undefined where nothing was to do
   * @throws InstallError when there is no configuration, or it cannot be changed safely
   */
  insert(): string | undefined {
    const file = configurationInUse(readdirSync(this.#path), this.#path);
    if (!file.endsWith(".conflist")) return this.#replaceByList(file);
    return this.#edit(file, insertPlugin) ? file : undefined;
  }

  /**
   * Takes the plugin out of every configuration.
   *
   * @returns the files that were changed
   * @throws InstallError when a list is malformed
   */
  remove(): readonly string[] {
    const files = readdirSync(this.#path);
    const restored = files.filter((file) => file.endsWith(REPLACED_SUFFIX));
    for (const saved of restored) this.#restore(saved);
    const edited = readdirSync(this.#path)
      .filter((file) => file.endsWith(".conflist") && this.#mentionsPlugin(file))
      .filter((file) => this.#edit(file, removePlugin));
    return [...restored, ...edited];
  }

  /** A file of another program that cannot be parsed is no business of ours unless the plugin is in it. */
  #mentionsPlugin(file: string): boolean {
    return this.#read(file).includes(CNI_PLUGIN);
  }

  #read(file: string): string {
    return readFileSync(join(this.#path, file), "utf8");
  }

  #edit(file: string, change: (text: string, file: string) => string): boolean {
    // A symbolic link stays one: the file it points to is edited.
    const path = realpathSync(join(this.#path, file));
    const text = readFileSync(path, "utf8");
    const changed = change(text, file);
    if (changed === text) return false;
    writeFileAtomically(path, changed, statSync(path).mode & 0o777);
    return true;
  }

  /** A plugin is chained in a list only. The list comes first, so that the node is at no moment without a network. */
  #replaceByList(file: string): string {
    const list = listName(file);
    const saved = `${file}${REPLACED_SUFFIX}`;
    const files = readdirSync(this.#path);
    const others = files.filter((other) => other !== file && other !== list);
    const path = join(this.#path, file);
    const text = insertPlugin(listOfOne(readFileSync(path, "utf8"), file), file);
    // One of this content was written by an agent that was killed before it renamed the file.
    const isOurs = files.includes(saved) || (files.includes(list) && this.#read(list) === text);
    const conflict = files.includes(list) && !isOurs;
    if (conflict || configurationInUse([...others, list], this.#path) !== list) {
      throw new InstallError(
        "unsupported-configuration",
        `${join(this.#path, file)} holds a single plugin, which cannot be chained, and another file would be used ` +
          `instead of ${list}: make it a .conflist, or remove the files that are not used`,
      );
    }
    writeFileAtomically(join(this.#path, list), text, statSync(path).mode & 0o777);
    renameSync(path, join(this.#path, saved));
    syncDirectory(this.#path);
    return list;
  }

  #restore(saved: string): void {
    const file = saved.slice(0, -REPLACED_SUFFIX.length);
    if (readdirSync(this.#path).includes(file)) rmSync(join(this.#path, saved));
    else renameSync(join(this.#path, saved), join(this.#path, file));
    rmSync(join(this.#path, listName(file)), { force: true });
    syncDirectory(this.#path);
  }
}

function listName(file: string): string {
  return file.replace(/\.(conf|json)$/, ".conflist");
}
