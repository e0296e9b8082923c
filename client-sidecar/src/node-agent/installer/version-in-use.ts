import { CURRENT_VERSION } from "../../cni/version.ts";

type Version = readonly [major: number, minor: number, micro: number];

/**
 * The version with which libcni, the library of container runtimes, runs a configuration list: the highest that it
 * knows of all that the list names; without `cniVersions` the one that is there, whatever it is.
 *
 * @param cniVersion empty if there is none
 * @returns undefined where libcni refuses the list, because something in it is no version
 * @see https://github.com/containernetworking/cni/blob/main/libcni/conf.go NetworkConfFromBytes
 */
export function versionInUse(
  cniVersion: string,
  cniVersions: readonly string[] | undefined,
): string | undefined {
  if (cniVersions === undefined) return cniVersion;
  const stated = cniVersion === "" ? cniVersions : [...cniVersions, cniVersion];
  const known: { readonly text: string; readonly version: Version }[] = [];
  for (const text of stated) {
    const version = parse(text);
    if (version === undefined) return undefined;
    if (compare(version, CURRENT) <= 0) known.push({ text, version });
  }
  return known.sort((a, b) => compare(a.version, b.version)).at(-1)?.text ?? cniVersion;
}

const CURRENT: Version = parse(CURRENT_VERSION) ?? [0, 0, 0];

/** One to three numbers; those that are missing are 0, and an empty text is the first version. */
function parse(text: string): Version | undefined {
  if (text === "") return [0, 1, 0];
  const match = /^(\d+)(?:\.(\d+))?(?:\.(\d+))?$/.exec(text);
  if (match === null) return undefined;
  const [, major, minor = "0", micro = "0"] = match;
  return [Number(major), Number(minor), Number(micro)];
}

function compare(a: Version, b: Version): number {
  return a[0] - b[0] || a[1] - b[1] || a[2] - b[2];
}
