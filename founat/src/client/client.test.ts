import { expect, test } from "vitest";
import { type Kernel, kernelHere } from "../kernel/kernel.ts";
import { clientConfig, egress, silent } from "../testing/configs.ts";
import { Client } from "./client.ts";

test("while a pod waits for it, a namespace in which commands hang is tried once only", async () => {
  const hanging = kernelHere({ silenceMs: 300 });
  let tries = 0;
  const kernel: Kernel = {
    ...hanging,
    read: () => {
      tries += 1;
      return hanging.run([{ file: "sleep", args: ["600"] }]);
    },
  };
  const setUp = new Client({ kernel, logger: silent }).setUp(clientConfig(egress()));
  await expect(setUp).rejects.toMatchObject({ code: "kernel-command-killed", retryable: true });
  expect(tries).toBe(1);
});
