import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleProgram } from "./bundle.ts";

const ROOT = join(import.meta.dirname, "../..");
const PROGRAMS = ["operator", "egress-pod", "client-sidecar"];
const MISCONFIGURED = 78;

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "bundle-"));
  for (const program of PROGRAMS) {
    await bundleProgram(join(ROOT, program, "src/main.ts"), join(folder, program));
  }
}, 60_000);

afterAll(() => rm(folder, { recursive: true }));

test.each(PROGRAMS)("%s runs without node_modules", async (program) => {
  const main = join(folder, program, "main.js");
  // The images compile their programs by this very call.
  const { exitCode } = await execa(process.execPath, [main, "serve"], { extendEnv: false, reject: false });
  expect(exitCode).toBe(MISCONFIGURED);
});

test.each(PROGRAMS)("%s comes with its licence and those of all that it holds", async (program) => {
  const notices = await readFile(join(folder, program, "THIRD_PARTY_NOTICES"), "utf8");
  expect(notices).toMatch(/^==== zod \d.*, MIT$/m);
  expect(notices).toMatch(/^Copyright \(c\) \d+ .*Colin McDonnell/m);
  expect(await readFile(join(folder, program, "LICENSE"), "utf8")).toContain("Apache License");
});

test.each(PROGRAMS)("%s starts without loading the fetch of Node", async (program) => {
  const listModules =
    'data:text/javascript,process.on("exit",()=>console.error(process.moduleLoadList.join()))';
  const main = join(folder, program, "main.js");
  const { stderr } = await execa(process.execPath, ["--import", listModules, main, "serve"], {
    extendEnv: false,
    reject: false,
  });
  expect(stderr).toContain("NativeModule https");
  expect(stderr).not.toContain("undici");
});

test.each(PROGRAMS)("%s loads no Kubernetes client library in a pod", async (program) => {
  const files = (await readdir(join(folder, program))).filter(
    (file) => file.endsWith(".js") && !file.startsWith("kubeconfig-credentials"),
  );
  const texts = await Promise.all(files.map((file) => readFile(join(folder, program, file), "utf8")));
  expect(texts.join("\n")).not.toContain("undici");
});
