import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { afterAll, beforeAll, expect, test } from "vitest";
import { VirtualMachine } from "../bed/vm/virtual-machine.ts";

const ROOT = join(import.meta.dirname, "../..");

let folder: string;
let machine: VirtualMachine;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "egress-nat-without-ipv6-"));
  await bundleProgram(join(ROOT, "client-sidecar/src/main.ts"), join(folder, "agent"));
  await bundleProgram(join(ROOT, "founat/examples/namespaces.ts"), join(folder, "example"));
  machine = await VirtualMachine.start({
    name: "without-ipv6",
    folder,
    memoryMiB: 1024,
    cpus: 1,
    lifetime: "owner",
    shares: [folder],
    kernelParameters: ["ipv6.disable=1"],
  });
});

afterAll(async () => {
  await machine?.kill();
  await rm(folder, { recursive: true, force: true });
});

test("on a kernel booted without IPv6 the modules load, and IPv4 uses the gateway", async () => {
  await machine.run(["node", join(folder, "agent/main.js"), "install-modules"]);
  expect(await machine.run(["node", join(folder, "example/main.js")])).toBe(
    [
      "without egress NAT the target sees: 10.1.1.2",
      "with egress NAT the target sees: 10.1.2.2",
      "after its removal the target sees: 10.1.1.2",
      "",
    ].join("\n"),
  );
});
