/** The parameters of one execution of the plugin: CNI specification 1.1, section 2 "Parameters". */

import type { PodReference } from "../client/pod.ts";
import { CniError, CniErrorCode } from "./error.ts";
import { host } from "./host.ts";
import { isName, NAME_RULE } from "./name.ts";

const COMMANDS = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] as const;
export type Command = (typeof COMMANDS)[number];

/** Kernel: IFNAMSIZ, with the terminating zero. */
const MAX_IFNAME_LENGTH = 15;

/**
 * @throws CniError 4 when CNI_COMMAND is missing or not known
 */
export function parseCommand(): Command {
  const text = host.environment.CNI_COMMAND ?? "";
  const command = COMMANDS.find((known) => known === text);
  if (command !== undefined) return command;
  throw new CniError(
    CniErrorCode.invalidEnvironment,
    `CNI_COMMAND is "${text}"; it must be one of ${COMMANDS.join(", ")}`,
    "this program is a CNI plugin: the container runtime runs it",
  );
}

/** @throws CniError 4 when CNI_CONTAINERID is missing or malformed; the id is used as a file's name */
export function parseContainerId(): string {
  return parameter("CNI_CONTAINERID", isName, NAME_RULE);
}

/** @throws CniError 4 when CNI_IFNAME is missing or is no name of an interface */
export function parseIfname(): string {
  const rule = `it must be the name of an interface, at most ${MAX_IFNAME_LENGTH} characters`;
  const isIfname = (name: string) =>
    /^[^\s/:]+$/.test(name) && name.length <= MAX_IFNAME_LENGTH && name !== "." && name !== "..";
  return parameter("CNI_IFNAME", isIfname, rule);
}

/** @throws CniError 4 when CNI_NETNS is missing or not absolute */
export function parseNetns(): string {
  const rule = "it must be the absolute path of a network namespace";
  return parameter("CNI_NETNS", (path) => path.startsWith("/"), rule);
}

function parameter(name: string, isValid: (text: string) => boolean, rule: string): string {
  const text = host.environment[name] ?? "";
  if (isValid(text)) return text;
  throw new CniError(CniErrorCode.invalidEnvironment, `${name} is "${text}"; ${rule}`);
}

/**
 * @throws CniError 4 when CNI_PATH is missing, which GC must have
 */
export function assertPath(): void {
  if ((host.environment.CNI_PATH ?? "") !== "") return;
  throw new CniError(
    CniErrorCode.invalidEnvironment,
    "CNI_PATH is missing; it must list the folders of the node's CNI plugins",
  );
}

/**
 * The pod in CNI_ARGS (`K8S_POD_NAMESPACE=...;K8S_POD_NAME=...`).
 *
 * @returns undefined where the container is no Kubernetes pod
 */
export function parsePod(): PodReference | undefined {
  const pairs = (host.environment.CNI_ARGS ?? "").split(";").map((pair) => {
    const at = pair.indexOf("=");
    return [pair.slice(0, at), pair.slice(at + 1)] as const;
  });
  const args = new Map(pairs);
  const namespace = args.get("K8S_POD_NAMESPACE") ?? "";
  const name = args.get("K8S_POD_NAME") ?? "";
  const uid = args.get("K8S_POD_UID") ?? "";
  if (namespace === "" || name === "") return undefined;
  return uid === "" ? { namespace, name } : { namespace, name, uid };
}
