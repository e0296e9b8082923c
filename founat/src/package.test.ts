import { globSync, readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { ROOT } from "@egress-nat/test/docs/markdown";
import { execa } from "execa";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { installTarballs, PACKAGES, pack, writeReadmeExample } from "./testing/package.ts";
import { publicApi } from "./testing/public-api.ts";

let folder: string;
let tarballs: Awaited<ReturnType<typeof pack>>;
/** Of a project that depends on founat. */
let project: string;
/** Of that project. */
let scope: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "founat-package-"));
  project = join(folder, "project");
  scope = join(project, "node_modules/@egress-nat");
  tarballs = await pack(folder);
  await installTarballs(tarballs, project);
});
afterAll(() => rm(folder, { recursive: true }));

const typeRoots = [join(ROOT, "node_modules/@types")];

test.each(PACKAGES)("%s holds what is needed, and no tests", (name) => {
  const installed = join(scope, name);
  const files = globSync("**/*.*", { cwd: installed });
  expect(files).toEqual(
    expect.arrayContaining(["README.md", "dist/index.js", "dist/index.d.ts", "src/index.ts"]),
  );
  expect(files.filter((path) => /\.test\.|testing\/|testdata\/|buildinfo/.test(path))).toEqual([]);
  expect(readFileSync(join(installed, "LICENSE"))).toEqual(readFileSync(join(ROOT, "LICENSE")));
});

test.each([
  ["addresses", 4],
  ["founat", 50],
])("the source maps of %s lead to sources that are there", (name, least) => {
  const installed = join(scope, name);
  const maps = globSync("dist/**/*.map", { cwd: installed });
  expect(maps.length).toBeGreaterThan(least);
  const sources = maps.flatMap((path) => {
    const map = JSON.parse(readFileSync(join(installed, path), "utf8")) as { sources: string[] };
    return map.sources.map((source) => join(dirname(path), source));
  });
  const files = new Set(globSync("src/**/*.ts", { cwd: installed }));
  expect(sources.filter((source) => !files.has(source))).toEqual([]);
});

test.each(PACKAGES)("publint finds nothing in %s", async (name) => {
  const { buffer } = new Uint8Array(await readFile(tarballs[name]));
  const { messages, pkg } = await publint({ pack: { tarball: buffer }, strict: true });
  expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
});

test.each(PACKAGES)("the types of %s are right wherever ES modules are", async (name) => {
  const result = await checkPackage(createPackageFromTarballData(await readFile(tarballs[name])));
  const problems = "problems" in result ? result.problems : [result];
  const ofOldTimes = ["node10", "node16-cjs"];
  expect(
    problems.filter(
      (problem) => !("resolutionKind" in problem && ofOldTimes.includes(problem.resolutionKind)),
    ),
  ).toEqual([]);
});

test("the README's example is right in a project that has nothing else", async () => {
  await writeReadmeExample(project);
  const compilerOptions = {
    ...{ strict: true, exactOptionalPropertyTypes: true, module: "nodenext", target: "es2024", noEmit: true },
    ...{ types: ["node"], typeRoots },
  };
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  const { all } = await execa(join(ROOT, "node_modules/.bin/tsc"), ["-p", project], {
    reject: false,
    all: true,
  });
  expect(all).toBe("");
}, 180_000);

test("it is loaded there, and has what its types say", async () => {
  const program = 'console.log(Object.keys(await import("@egress-nat/founat")).sort().join(" "))';
  const { stdout } = await execa(process.execPath, ["--input-type=module", "-e", program], {
    cwd: project,
    env: { NODE_OPTIONS: "" },
  });
  expect(stdout).toContain("Client FAMILIES ForkServer FounatError Gateway GatewayWatch");
});

test("its public API is what api.md says", async () => {
  const { exported, named } = publicApi(join(scope, "founat/dist/index.d.ts"), scope, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2024,
    types: ["node"],
    typeRoots,
  });
  const text = [
    "# Public API",
    "",
    "All that `@egress-nat/founat` exports, made from its declarations. A test fails where it differs from them; `npx vitest run",
    "founat/src/package --project unit --update` writes it.",
    ...["", "```ts", exported, "```", ""],
    "These are named by the above, and not exported:",
    ...["", "```ts", named, "```", ""],
  ];
  await expect(text.join("\n")).toMatchFileSnapshot("../api.md");
});
