import { expect, test } from "vitest";
import { FounatError } from "../../error.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { gatewayPolicyOf } from "../../testing/configs.ts";
import { IptablesBackend } from "./backend.ts";

/** It holds nothing, and takes what it is told, until `ipset` fails. */
class BareKernel implements Pick<Kernel, "run" | "read"> {
  fails = false;

  read: Kernel["read"] = async (steps) => {
    const [failing] = steps.filter((step) => "file" in step && step.file === "ipset" && !step.mayFail);
    if (this.fails && failing) throw new FounatError("kernel-command-failed", "ipset failed");
    return steps.map(() => "");
  };

  run: Kernel["run"] = async () => [];
}

test("what is not installed has made nothing", async () => {
  const kernel = new BareKernel();
  kernel.fails = true;
  const backend = new IptablesBackend(kernel);
  expect(await backend.exists()).toBe(false);
  expect((await backend.read()).exists).toBe(false);
});

test("where it has worked before, no answer is not the answer that nothing is there", async () => {
  const kernel = new BareKernel();
  const backend = new IptablesBackend(kernel);
  const state = await backend.read();
  await state.changes(gatewayPolicyOf({}), { present: new Set(), replaced: new Set() }, new Map());
  kernel.fails = true;
  await expect(backend.exists()).rejects.toThrow("ipset failed");
  await expect(backend.read()).rejects.toThrow("ipset failed");
});

test.each([
  ["create en-inner4 hash:ip,mark", true],
  ["create egress hash:ip\ncreate xen-1 hash:ip", false],
])("one of its sets is enough: %s", async (saved, exists) => {
  const names = saved.replaceAll(/^create (\S+).*/gm, "$1");
  const backend = new IptablesBackend({
    read: async (steps) =>
      steps.map((step) => {
        if (!("file" in step) || step.file !== "ipset") return "";
        return step.args.includes("-name") ? names : `${saved}\n`;
      }),
    run: async () => [],
  });
  expect(await backend.exists()).toBe(exists);
  expect((await backend.read()).exists).toBe(exists);
});
