import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { type Processing, VirtualMachine } from "../bed/vm/virtual-machine.ts";
import { Cleanup } from "./cleanup.ts";
import { withFolder } from "./folder.ts";
import { progress } from "./progress.ts";

/**
 * Boots a virtual machine for one measurement.
 *
 * @param measure is given a folder, too, that both sides see at the same path
 */
export async function withMachine<T>(
  processing: Processing,
  measure: (machine: VirtualMachine, folder: string) => Promise<T>,
): Promise<T> {
  await needCommands(["conntrack", "ip", "ipset", "iptables", "nft", "sysctl"]);
  return withFolder(async (folder) => {
    const options = {
      name: "bench",
      folder,
      memoryMiB: 2048,
      ...processing,
      lifetime: "owner",
      shares: [folder],
    } as const;
    progress("a virtual machine boots");
    const machine = await VirtualMachine.start(options);
    await using _machine = new Cleanup(() => machine.kill());
    return await measure(machine, folder);
  });
}
