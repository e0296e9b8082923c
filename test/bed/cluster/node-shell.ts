import { startCommand } from "../vm/exec-channel.ts";
import type { ClusterNode } from "./node.ts";

/**
 * An interactive shell on a node, on this program's terminal.
 *
 * @returns its exit code
 */
export async function nodeShell(node: ClusterNode): Promise<number> {
  const { stdin, stdout, stderr } = process;
  const { columns = 80, rows = 24 } = stdout;
  // script(1) gives the shell a terminal of its own on the node.
  const shell = `stty columns ${columns} rows ${rows}; exec bash`;
  const command = startCommand(
    node.machine.execSocket,
    ["script", "--quiet", "--return", "--command", shell, "/dev/null"],
    { env: { TERM: process.env.TERM ?? "dumb", PS1: `${node.name}# ` }, directory: "/root" },
    (stream, data) => (stream === "stdout" ? stdout : stderr).write(data),
  );
  if (stdin.isTTY) stdin.setRawMode(true);
  stdin.on("data", (data) => command.write(data));
  stdin.on("end", () => command.endInput());
  try {
    return (await command.ended).exitCode;
  } finally {
    if (stdin.isTTY) stdin.setRawMode(false);
    stdin.destroy();
    command.kill();
  }
}
