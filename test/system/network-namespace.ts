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
 */
export async function ipBatch(netns: string | undefined, commands: readonly string[]): Promise<void> {
  const [file, ...arguments_] = inNetns(netns, ["ip", "-batch", "-"]) as [string, ...string[]];
  await execa(file, arguments_, { input: `${commands.join("\n")}\n` });
}
