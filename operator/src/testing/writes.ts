/** Whether a request changes what an operator is there for: anything but leases and events. */
export function isWrite({ method, path }: { readonly method: string; readonly path: string }): boolean {
  return method !== "GET" && !/\/(leases|events)\b/.test(path);
}
