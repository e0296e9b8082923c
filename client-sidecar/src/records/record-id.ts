/** The name of a client's record: CNI identifies an attachment by its network's name, CNI_CONTAINERID and CNI_IFNAME. */

import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import type { Attachment } from "./schema.ts";

/**
 * How much of a file's name (NAME_MAX: 255 bytes) a container's id or a network's name may take. With both, the interface
 * and what an atomic write puts around them there are 230.
 */
const MAX_NAME_BYTES = 100;

/** In no container's id and in no interface's name. */
const SEPARATOR = ":";

/** A record of an earlier version is named for its container alone, and stays so until its client ends. */
export function recordId({ network, containerId, ifname }: Attachment): string {
  const container = shortened(containerId);
  if (network === undefined) return container;
  return [container, ifname, encoded(shortened(network))].join(SEPARATOR);
}

/** What stands for a container's id or a network's name in the name of a record: itself, or its digest where it is long. */
export function shortened(name: string): string {
  if (encoded(name).length <= MAX_NAME_BYTES) return name;
  const bytes = Uint8Array.from(encoded(name), (letter) => letter.charCodeAt(0));
  return bytesToHex(sha256(bytes));
}

function encoded(name: string): string {
  return encodeURIComponent(name.toWellFormed());
}

/** What a record's name says, {@link shortened}: of one of an earlier version only the container. Never throws, because DEL must not fail. */
export function parseRecordId(id: string): Pick<Attachment, "containerId"> & Partial<Attachment> {
  const [containerId = "", ifname, network] = id.split(SEPARATOR);
  if (ifname === undefined || network === undefined) return { containerId };
  return { containerId, ifname, network: decode(network) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a file that is not ours
  }
}
