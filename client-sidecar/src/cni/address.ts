import { isObject, type JsonObject } from "./json.ts";

/**
 * One spelling per address (RFC 5952 for IPv6): an address is a file's name and an identity, and other plugins may
 * spell it otherwise.
 *
 * @param text an address without prefix length
 * @returns undefined where it is no address
 */
export function canonicalAddress(text: string): string | undefined {
  if (/^(\d{1,3}\.){3}\d{1,3}$/.test(text)) {
    return text.split(".").every((byte) => Number(byte) <= 255 && String(Number(byte)) === byte)
      ? text
      : undefined;
  }
  // The host parser of URLs canonicalises IPv6 addresses, and needs no module: https://url.spec.whatwg.org/#concept-ipv6-parser
  const url = text.includes(":") ? URL.parse(`http://[${text}]/`) : null;
  return url?.hostname.slice(1, -1);
}

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
    const address = canonicalAddress(ip.address.split("/")[0] ?? "");
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
