/**
 * The API's MicroTime: RFC 3339 with exactly six digits of a second. The apiserver refuses any other number of them.
 *
 * @param at milliseconds since the epoch
 */
export function microTime(at: number = Date.now()): string {
  return new Date(at).toISOString().replace("Z", "000Z");
}
