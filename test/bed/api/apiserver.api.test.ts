import { kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { execa } from "execa";
import { expect, inject, test } from "vitest";
import { apiserver, etcd } from "./apiserver.ts";

async function readyz(): Promise<boolean> {
  const { exitCode } = await execa(
    await kubectlBinary(),
    [`--kubeconfig=${inject("kubeconfig")}`, "get", "--raw=/readyz", "--request-timeout=2s"],
    { reject: false },
  );
  return exitCode === 0;
}

test("a test can kill the apiserver and start it again", async () => {
  expect(await readyz()).toBe(true);
  await apiserver.kill();
  expect(await readyz()).toBe(false);
  await apiserver.start();
  expect(await readyz()).toBe(true);
});

test("a paused apiserver does not answer until it is resumed", async () => {
  await apiserver.pause();
  expect(await readyz()).toBe(false);
  await apiserver.resume();
  expect(await readyz()).toBe(true);
});

test("a test can kill etcd and start it again, and the apiserver goes on", async () => {
  try {
    await etcd.kill();
    await expect.poll(readyz, { timeout: 30_000 }).toBe(false);
  } finally {
    await etcd.start();
  }
  await expect.poll(readyz, { timeout: 30_000 }).toBe(true);
});
