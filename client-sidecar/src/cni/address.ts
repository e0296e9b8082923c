import { host } from "./host.ts";
import { isObject, type JsonObject } from "./json.ts";

/**
 * The addresses of the pod in a CNI result: those of interfaces in the sandbox, or of no interface.
 *
 * @param result `prevResult` of any supported version
 * @returns canonical addresses in the result's order; undefined where an entry is malformed
 */
export function podAddresses(result: JsonObject): readonly string[] | undefined {
  // The text of 0.3.0 says "ip", its libcni "ips".
  const ips = result.ips ?? result.ip ?? [];
  const interfaces = result.interfaces ?? [];
  if (!Array.isArray(ips) || !Array.isArray(interfaces)) return undefined;
  const addresses = new Set<string>();
  for (const ip of ips) {
    if (!isObject(ip) || typeof ip.address !== "string") return undefined;
    // An address is a file's name and an identity, and other plugins may spell it otherwise.
    const address = host.canonicalAddress(ip.address.split("/")[0] ?? "");
    if (address === undefined) return undefined;
    if (isInSandbox(interfaces, ip.interface)) addresses.add(address);
  }
  return [...addresses];
}

function isInSandbox(interfaces: readonly unknown[], index: unknown): boolean {
  if (typeof index !== "number") return true;
  const owner = interfaces[index];
  return !isObject(owner) || (owner.sandbox ?? "") !== "";
}
