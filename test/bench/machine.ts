import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { type Processing, VirtualMachine } from "../bed/vm/virtual-machine.ts";
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
  const folder = await mkdtemp(join(tmpdir(), "egress-nat-bench-"));
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
  try {
    return await measure(machine, folder);
  } finally {
    await machine.kill();
    await rm(folder, { recursive: true, force: true });
  }
}
