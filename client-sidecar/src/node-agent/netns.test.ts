import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@egress-nat/program";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KernelPodNetworks } from "./netns.ts";

const networks = new KernelPodNetworks(createLogger({ name: "test", level: "silent" }));

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "egress-nat-netns-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("a network namespace", () => {
  it("is there while its file is one", async () => {
    expect(await networks.exists("/proc/self/ns/net")).toBe(true);
  });

  it("is gone with its file, or with what was mounted on it", async () => {
    const path = join(folder, "cni-1");
    expect(await networks.exists(path)).toBe(false);
    writeFileSync(path, "");
    expect(await networks.exists(path)).toBe(false);
  });

  it("is not taken for gone because it could not be looked at", async () => {
    const path = join(folder, "cni-1");
    symlinkSync(path, path); // ELOOP
    expect(await networks.exists(path)).toBe(true);
  });
});
