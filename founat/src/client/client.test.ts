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

test("a repair that only looks yet ends with its signal, and changes nothing", async () => {
  const here = kernelHere();
  const ended = new AbortController();
  let writes = 0;
  const kernel: Kernel = {
    ...here,
    read: async () => {
      ended.abort(new Error("something else is urgent"));
      return new Promise(() => undefined);
    },
    run: async () => {
      writes += 1;
      return [];
    },
  };
  const client = new Client({ kernel, logger: silent });
  for (let time = 0; time < 2; time += 1) {
    const repair = client.repair(clientConfig(egress()), ended.signal);
    await expect(repair).rejects.toThrow("something else is urgent");
  }
  expect(writes).toBe(0);
});
