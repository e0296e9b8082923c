/** Now, as the API's Time: RFC 3339 with whole seconds. */
export function time(): string {
  return new Date().toISOString().replace(/\.\d+Z$/, "Z");
}

/** Now, as the API's MicroTime: RFC 3339 with exactly six digits of a second. The apiserver refuses any other number of them. */
export function microTime(): string {
  return new Date().toISOString().replace("Z", "000Z");
}
