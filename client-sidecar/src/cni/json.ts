import { CniError, CniErrorCode } from "./error.ts";

/** What `JSON.parse` returned, looked at one step at a time: the plugin ships without a schema library. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * @param complaint what to say of a text that is no JSON
 * @throws CniError 6
 */
export function parseJson(text: string, complaint: (cause: unknown) => string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CniError(CniErrorCode.decodingFailure, complaint(cause), undefined, { cause });
  }
}
