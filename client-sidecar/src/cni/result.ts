/** Results of the plugins before this one, as versions of the CNI specification have them. */

import { CniError, CniErrorCode } from "./error.ts";
import { isObject, type JsonObject } from "./json.ts";
import { SUPPORTED_VERSIONS } from "./version.ts";

/** Until then each entry of `ips` says its family. */
const FIRST_WITHOUT_FAMILY = "1.0.0";

/**
 * The result in the version of the configuration, which is that of whoever reads it next.
 *
 * @param result `prevResult`; one without a version is of the configuration's, as libcni has it
 * @param version of the configuration, a supported one
 * @returns the very same object where it is of that version
 * @throws CniError 1 when it is of a version that is not supported
 */
export function resultAs(version: string, result: JsonObject): JsonObject {
  const { cniVersion: own = version } = result;
  if (result.cniVersion === version) return result;
  if (typeof own !== "string" || !SUPPORTED_VERSIONS.includes(own)) {
    throw new CniError(
      CniErrorCode.incompatibleVersion,
      `prevResult is of cniVersion ${JSON.stringify(own)}, which is not supported`,
      `the plugin before egress-nat must answer in the configuration's version, ${version}`,
    );
  }
  const { ips } = result;
  const converted = saysFamily(own) !== saysFamily(version) && Array.isArray(ips);
  return {
    ...result,
    cniVersion: version,
    ...(converted && { ips: ips.map((ip: unknown) => (isObject(ip) ? entryAs(version, ip) : ip)) }),
  };
}

function entryAs(version: string, { version: _, ...ip }: JsonObject): JsonObject {
  return saysFamily(version) ? { version: String(ip.address).includes(":") ? "6" : "4", ...ip } : ip;
}

function saysFamily(version: string): boolean {
  return SUPPORTED_VERSIONS.indexOf(version) < SUPPORTED_VERSIONS.indexOf(FIRST_WITHOUT_FAMILY);
}
