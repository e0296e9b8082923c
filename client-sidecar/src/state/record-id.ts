/** The name of a client's record: CNI identifies an attachment by its network's name, CNI_CONTAINERID and CNI_IFNAME. */

/** One interface of one container in one network. */
export interface Attachment {
  /** `name` of the network configuration; absent where an earlier version has not kept it. */
  readonly network?: string;
  readonly containerId: string;
  readonly ifname: string;
}

/** In no container's id and in no interface's name. */
const SEPARATOR = ":";

/** A record of an earlier version is named for its container alone, and stays so until its client ends. */
export function recordId({ network, containerId, ifname }: Attachment): string {
  if (network === undefined) return containerId;
  return [containerId, ifname, encodeURIComponent(network.toWellFormed())].join(SEPARATOR);
}

/** What a record's name says: of one of an earlier version only the container. Never throws, because DEL must not fail. */
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
