/** The plugin's entry in a node's CNI configuration: pure functions from text to text. */

import { isDeepStrictEqual } from "node:util";
import { CNI_PLUGIN } from "@egress-nat/crds/names";
import { z } from "zod";
import { ANNOTATIONS_CAPABILITY } from "../../cni/configuration.ts";
import { SUPPORTED_VERSIONS } from "../../cni/version.ts";
import { InstallError } from "./error.ts";
import { arrayElements } from "./json-text.ts";
import { versionInUse } from "./version-in-use.ts";

/** What a CNI configuration says of the plugin. */
const ENTRY = { type: CNI_PLUGIN, capabilities: { [ANNOTATIONS_CAPABILITY]: true } };

const Plugin = z.looseObject({ type: z.string() });

const ConfigurationList = z.looseObject({
  cniVersion: z.string().default(""),
  cniVersions: z.array(z.string()).optional(),
  name: z.string(),
  plugins: z.array(Plugin).min(1),
});

const Configuration = z.looseObject({ cniVersion: z.string(), name: z.string(), type: z.string() });

/**
 * Puts the plugin at the end of a configuration list. A list that has it already keeps it where it is, as other
 * programs insert theirs as well: two that both insist on the last place would never end.
 *
 * @param text of a .conflist
 * @param file its name, for messages
 * @returns the text with the entry inserted; the same text where the entry is there
 * @throws InstallError `unsupported-configuration` when the list is malformed, or of a version in which chaining or the
 *   plugin would fail every pod of the node
 */
export function insertPlugin(text: string, file: string): string {
  const { plugins } = parseList(text, file);
  const ours = positions(plugins);
  if (ours.length === 1 && isDeepStrictEqual(plugins[ours[0] ?? 0], ENTRY)) return text;
  const clean = removePlugin(text, file);
  const last = arrayElements(clean, "plugins").at(-1);
  if (last === undefined)
    throw unsupported(file, "it has no plugin but egress-nat, which needs one before it");
  // The white space before the value.
  const separator = clean.slice(clean.slice(0, last.start).trimEnd().length, last.start);
  return `${clean.slice(0, last.end)},${separator}${JSON.stringify(ENTRY)}${clean.slice(last.end)}`;
}

/**
 * Takes the plugin out of a configuration list: the inverse of {@link insertPlugin}.
 *
 * @returns the same text where the plugin is not in it
 * @throws InstallError `unsupported-configuration` when the list is malformed
 */
export function removePlugin(text: string, file: string): string {
  const { plugins } = parse(ConfigurationList, text, file);
  return positions(plugins).reduceRight(removeElement, text);
}

/**
 * Makes a list of one configuration, as the container runtime itself does (ConfListFromConf of libcni).
 *
 * @throws InstallError `unsupported-configuration` when the configuration is malformed
 */
export function listOfOne(text: string, file: string): string {
  const { cniVersion, name } = parse(Configuration, text, file);
  return `{\n  "cniVersion": ${JSON.stringify(cniVersion)},\n  "name": ${JSON.stringify(name)},\n  "plugins": [\n${text.trim()}\n  ]\n}\n`;
}

/**
 * The file that a container runtime uses: the first in byte order of those with a known extension
 * (go-cni in containerd, ocicni in CRI-O).
 *
 * @param files names in the configuration directory
 * @throws InstallError `no-configuration` when there is none
 */
export function configurationInUse(files: readonly string[], directory: string): string {
  const [first] = files.filter((file) => /\.(conf|conflist|json)$/.test(file)).sort();
  if (first !== undefined) return first;
  throw new InstallError(
    "no-configuration",
    `no CNI configuration (.conflist, .conf, .json) in ${directory}: install the cluster's network first, or set the directory that its container runtime reads`,
  );
}

/** A list in which the plugin can work. */
function parseList(text: string, file: string): z.infer<typeof ConfigurationList> {
  const list = parse(ConfigurationList, text, file);
  const version = versionInUse(list.cniVersion, list.cniVersions);
  if (version === undefined) {
    throw unsupported(file, `cniVersion or cniVersions is not a version: ${versionsOf(list)}`);
  }
  if (SUPPORTED_VERSIONS.includes(version)) return list;
  throw unsupported(
    file,
    `its cniVersion ${versionsOf(list)} is not one of ${SUPPORTED_VERSIONS.join(", ")}: every pod of the node would fail`,
  );
}

function versionsOf({ cniVersion, cniVersions = [] }: z.infer<typeof ConfigurationList>): string {
  const stated = [cniVersion, ...cniVersions].filter((version) => version !== "");
  return stated.length === 0 ? "(none, which means 0.1.0)" : stated.join(", ");
}

function parse<T>(schema: z.ZodType<T>, text: string, file: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unsupported(file, `it is not JSON: ${cause instanceof Error ? cause.message : cause}`, cause);
  }
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw unsupported(file, z.prettifyError(result.error).replaceAll("\n", " "), result.error);
}

function positions(plugins: readonly z.infer<typeof Plugin>[]): readonly number[] {
  return plugins.flatMap((plugin, position) => (plugin.type === CNI_PLUGIN ? [position] : []));
}

function removeElement(text: string, position: number): string {
  const spans = arrayElements(text, "plugins");
  const [before, removed, after] = [spans[position - 1], spans[position], spans[position + 1]];
  if (removed === undefined) return text;
  if (before !== undefined) return text.slice(0, before.end) + text.slice(removed.end);
  return text.slice(0, removed.start) + text.slice(after?.start ?? removed.end);
}

function unsupported(file: string, why: string, cause?: unknown): InstallError {
  return new InstallError("unsupported-configuration", `cannot add the plugin to ${file}: ${why}`, { cause });
}
