import { join } from "node:path";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { execa } from "execa";
import { withFolder } from "../folder.ts";
import { progress } from "../progress.ts";

/** As many as a node may have pods. */
const CLIENTS = 110;

export const NATIVE_SETUP = `${CLIENTS} clients on this machine, both families, links of another kind in place of FoU`;

/**
 * Runs a part of the node agent, as it is shipped, on this machine: an emulated one would count what its emulation costs.
 *
 * @param program it takes how many clients and rounds there are, and prints JSON
 * @param clients default: as many as a node may have
 * @param more what else it takes
 * @returns what it has printed
 */
export async function runAgentPart(
  program: string,
  rounds: number,
  clients = CLIENTS,
  ...more: readonly string[]
): Promise<unknown> {
  await needCommands(["ip", "nft", "ping"]);
  return withFolder(async (folder) => {
    await bundleProgram(program, folder);
    progress(`${clients} network namespaces, ${rounds} rounds`);
    // In a network namespace of its own it may take any address.
    const part = [process.execPath, join(folder, "main.js"), `${clients}`, `${rounds}`, ...more];
    const { stdout } = await execa("unshare", ["--net", ...part]);
    return JSON.parse(stdout);
  });
}
