/**
 * Paths through one router to one target: `product`, whose client and gateway are founat's, `hand`, with a link per peer
 * and a masquerade rule as anybody would write them, and `iptables`, as `product` with the other backend.
 */
export const PATHS = ["product", "hand", "iptables"] as const;
export type Path = (typeof PATHS)[number];

export const TARGET = { ipv4: "192.0.2.2", ipv6: "2001:db8::2" } as const;

/** The namespaces of a path, and their addresses. */
export function clientOf(path: Path) {
  return { netns: `${path}-client`, ...addresses(path, 2) };
}

export function gatewayOf(path: Path) {
  return { netns: `${path}-gateway`, ...addresses(path, 3) };
}

function addresses(path: Path, host: number) {
  const net = PATHS.indexOf(path) + 1;
  return { ipv4: `10.${net}.${host}.2`, ipv6: `fd00:${net}:${host}::2` };
}
