/** What `JSON.parse` returned, looked at one step at a time: the plugin ships without a schema library. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
