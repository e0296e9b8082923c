/** The network configuration that the container runtime writes to the plugin's stdin. */

import type { Annotations } from "../client/opt-in.ts";
import type { Attachment } from "../records/schema.ts";
import { podAddresses } from "./address.ts";
import { CniError, CniErrorCode, messageOf } from "./error.ts";
import { isObject, type JsonObject, parseJson } from "./json.ts";
import { isName, NAME_RULE } from "./name.ts";
import { resultAs } from "./result.ts";
import { CURRENT_VERSION } from "./version.ts";

/** The capability by which containerd and CRI-O hand a pod's annotations to a plugin. */
export const ANNOTATIONS_CAPABILITY = "io.kubernetes.cri.pod-annotations";

/**
 * @throws CniError 6 when stdin is no JSON object
 */
export function parseConfiguration(stdin: string): JsonObject {
  const complaint = (cause: unknown) => `the network configuration on stdin is not JSON: ${messageOf(cause)}`;
  const value = parseJson(stdin, complaint);
  if (isObject(value)) return value;
  throw new CniError(CniErrorCode.decodingFailure, "the network configuration on stdin is not a JSON object");
}

/**
 * @throws CniError 7 when cniVersion is missing or no string
 */
export function configurationVersion(configuration: JsonObject): string {
  const version = configuration.cniVersion;
  if (typeof version === "string") return version;
  throw new CniError(
    CniErrorCode.invalidConfiguration,
    "cniVersion is missing from the network configuration, or is not a string",
    `write ${CURRENT_VERSION} into the node's CNI configuration`,
  );
}

/**
 * The network's name, by which the runtime tells attachments of one container apart.
 *
 * @throws CniError 7 when it is missing or not as section 1 "Configuration format" has it
 */
export function networkName(configuration: JsonObject): string {
  const { name } = configuration;
  if (typeof name === "string" && isName(name)) return name;
  throw new CniError(
    CniErrorCode.invalidConfiguration,
    name === undefined
      ? "name is missing from the network configuration"
      : `name is ${JSON.stringify(name)}; ${NAME_RULE}`,
    "the container runtime takes it from the node's CNI configuration",
  );
}

/**
 * The result of the plugins before this one.
 *
 * @returns the result in the version of the configuration, and the pod's addresses in it
 * @throws CniError 7 when prevResult is missing or malformed, 1 when it is of a version that is not supported
 */
export function previousResult(configuration: JsonObject) {
  const value = configuration.prevResult;
  if (!isObject(value)) {
    throw new CniError(
      CniErrorCode.invalidConfiguration,
      "prevResult is missing from the network configuration, or is not an object",
      "egress-nat is a chained plugin: it comes after the plugin that makes the interface, in a .conflist",
    );
  }
  const addresses = podAddresses(value);
  if (addresses !== undefined)
    return { value: resultAs(configurationVersion(configuration), value), addresses };
  throw new CniError(
    CniErrorCode.invalidConfiguration,
    "prevResult holds a malformed address",
    'each entry of prevResult.ips needs an "address" like 192.0.2.1/24',
  );
}

/**
 * @returns the pod's annotations; undefined where the runtime does not pass them
 * @throws CniError 7 when they are malformed
 */
export function podAnnotations(configuration: JsonObject): Annotations | undefined {
  const runtimeConfig = configuration.runtimeConfig;
  if (!isObject(runtimeConfig) || !(ANNOTATIONS_CAPABILITY in runtimeConfig)) return undefined;
  // Go writes a map that was never made as null: a pod without annotations.
  const annotations = runtimeConfig[ANNOTATIONS_CAPABILITY] ?? {};
  if (isObject(annotations) && Object.values(annotations).every((value) => typeof value === "string")) {
    return annotations as Annotations;
  }
  throw new CniError(
    CniErrorCode.invalidConfiguration,
    `runtimeConfig["${ANNOTATIONS_CAPABILITY}"] is not a map of strings`,
  );
}

/**
 * The attachments to this network that GC is to keep.
 *
 * @throws CniError 7 when they are missing or malformed: nothing is removed on a guess
 */
export function validAttachments(
  configuration: JsonObject,
): readonly Pick<Attachment, "containerId" | "ifname">[] {
  const key = "cni.dev/valid-attachments";
  // Go writes a list that was never made as null: a network without attachments.
  const list = configuration[key] === null ? [] : configuration[key];
  if (Array.isArray(list) && list.every(isAttachment)) {
    return list.map(({ containerID, ifname }) => ({ containerId: containerID, ifname }));
  }
  throw new CniError(
    CniErrorCode.invalidConfiguration,
    `${key} is missing from the network configuration, or malformed`,
    'each entry needs "containerID" and "ifname"',
  );
}

function isAttachment(entry: unknown): entry is { readonly containerID: string; readonly ifname: string } {
  return isObject(entry) && typeof entry.containerID === "string" && typeof entry.ifname === "string";
}
