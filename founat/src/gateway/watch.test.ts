import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Suspicion } from "./gateway.ts";
import { GatewayWatch } from "./watch.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "gateway-watch-"));
  vi.stubEnv("PATH", `${folder}:${process.env.PATH}`);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

test("where nft has lost notifications, all elements are suspected", async () => {
  await program("nft", "echo '# ERROR: We lost some netlink events!'");
  await program("ip", "");
  const { promise, resolve } = Promise.withResolvers<Suspicion>();
  const logger = { debug: () => undefined, info: () => undefined, warn: () => undefined };
  const watch = new GatewayWatch({ port: 5555, ownTransactions: () => 0, onChange: resolve, logger });
  const stop = new AbortController();
  const watching = watch.run(stop.signal);
  expect(await promise).toEqual({ elements: true });
  stop.abort();
  await watching;
});

/** Puts a program that does this, and stays, in the place of a monitor. */
async function program(name: string, command: string): Promise<void> {
  await writeFile(join(folder, name), `#!/bin/sh\n${command}\nexec sleep 60\n`, { mode: 0o755 });
}
