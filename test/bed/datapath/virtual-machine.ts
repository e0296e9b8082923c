import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import type { TestProject } from "vitest/node";
import { VirtualMachine } from "../vm/virtual-machine.ts";
import { MAKE_SLOTS, SLOTS } from "./slots.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Unix socket of the exec channel of the machine that all `*.datapath.test.ts` files of a run share. */
    datapathMachine: string;
    /** A folder that the host and the machine both see at this path and may write to. */
    datapathShare: string;
  }
}

/** vitest's globalSetup of `*.datapath.test.ts`: one machine with the modules of the data path. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await needCommands([
    ...["conntrack", "ip", "ipset", "iptables", "nft", "ping", "python3", "socat", "sysctl"],
  ] as const);
  const folder = await mkdtemp(join(tmpdir(), "egress-nat-datapath-"));
  const machine = await VirtualMachine.start({
    name: "datapath",
    folder,
    memoryMiB: 2048,
    cpus: SLOTS,
    lifetime: "owner",
    shares: [folder],
  });
  await machine.run(MAKE_SLOTS);
  project.provide("datapathMachine", machine.execSocket);
  project.provide("datapathShare", folder);
  return async () => {
    await machine.kill();
    await rm(folder, { recursive: true, force: true });
  };
}
