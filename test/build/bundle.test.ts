import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleProgram } from "./bundle.ts";

const ROOT = join(import.meta.dirname, "../..");
const MISCONFIGURED = 78;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "bundle-"));
  for (const program of ["operator", "egress-pod", "client-sidecar"]) {
    await bundleProgram(join(ROOT, program, "src/main.ts"), join(folder, program));
  }
}, 60_000);

afterAll(() => rm(folder, { recursive: true }));

test.each(["operator", "egress-pod", "client-sidecar"])("%s runs without node_modules", async (program) => {
  const main = join(folder, program, "main.js");
  // The images compile their programs by this very call.
  const { exitCode } = await execa(process.execPath, [main, "serve"], { extendEnv: false, reject: false });
  expect(exitCode).toBe(MISCONFIGURED);
});

test.each(["egress-pod", "client-sidecar"])(
  "%s loads no Kubernetes client library in a pod",
  async (program) => {
    const files = (await readdir(join(folder, program))).filter(
      (file) => !file.startsWith("kubeconfig-credentials"),
    );
    const texts = await Promise.all(files.map((file) => readFile(join(folder, program, file), "utf8")));
    expect(texts.join("\n")).not.toContain("undici");
  },
);
