import { execa } from "execa";

/** How to run a command in a network namespace; the mounts stay as they are, unlike with `ip netns exec`. */
export function inNetns(netns: string | undefined, command: readonly string[]): readonly string[] {
  return netns === undefined ? command : ["nsenter", `--net=${netns}`, "--", ...command];
}

/** Path of a named network namespace, as iproute2 keeps it (ip-netns(8)). */
export function netnsPath(name: string): string {
  return `/run/netns/${name}`;
}

/**
 * Runs a batch of `ip` commands in a network namespace: one process however many there are.
 *
 * @param commands without the leading "ip", such as "link set lo up"
 * @param family for the commands that need to be told
 */
export async function ipBatch(
  netns: string | undefined,
  commands: readonly string[],
  family?: "-4" | "-6",
): Promise<void> {
  const ip = ["ip", ...(family === undefined ? [] : [family]), "-batch", "-"];
  const [file, ...args] = inNetns(netns, ip) as [string, ...string[]];
  await execa(file, args, { input: `${commands.join("\n")}\n` });
}
