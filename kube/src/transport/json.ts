import { retryableError } from "../error.ts";

/**
 * @param complaint what to say of a text that is no JSON
 * @throws KubeError InvalidResponse
 */
export function parseJson(text: string, complaint: () => string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw retryableError("InvalidResponse", complaint(), cause);
  }
}

/** @returns undefined where the text is no JSON */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
