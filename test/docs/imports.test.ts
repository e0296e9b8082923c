import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ROOT } from "./markdown.ts";

/** Files of a project that has nothing but them, and what each imports. */
const REFUSED = {
  "kube/src/workspace.ts": "@egress-nat/crds",
  "founat/src/subpath.ts": "@egress-nat/crds/names",
  "operator/src/deep/insides.test.ts": "../../../kube/src/testing/fake-clock.ts",
  "test/e2e/insides.e2e.test.ts": "../../founat/src/kernel/kernel.ts",
  "client-sidecar/src/program.ts": "./main.ts",
  "egress-pod/src/other-program.ts": "@egress-nat/client-sidecar",
  "egress-pod/src/other-program.test.ts": "@egress-nat/client-sidecar",
  "client-sidecar/src/records/layer.ts": "../client/adder.ts",
  "client-sidecar/src/node-agent/installer/workspace.ts": "@egress-nat/operator",
  "client-sidecar/src/client/cni.ts": "../cni/protocol.ts",
  "client-sidecar/src/cni/layer.ts": "../node-agent/protocol.ts",
  "founat/src/kernel/layer.ts": "../iproute/links.ts",
  "founat/src/client/sibling.ts": "../gateway/policy.ts",
  "founat/src/backends/nft/effects.ts": "../../gateway/gateway.ts",
  "kube/src/transport/layer.ts": "../watch/list.ts",
  "operator/src/installation/layer.ts": "../egress/plan.ts",
  "operator/src/egress/wiring.ts": "../caches.ts",
  "tools/build/tests.ts": "@egress-nat/test/bed/api/apiserver",
  "test/bed/cluster/tests.ts": "../../e2e/kit/world.ts",
};

const ACCEPTED = {
  "egress-pod/src/workspace.ts": "@egress-nat/crds/names",
  "operator/src/face.test.ts": "@egress-nat/kube/testing/fake-clock",
  "client-sidecar/src/slices/layer.ts": "../client/adder.ts",
  "client-sidecar/src/client/any-layer.test.ts": "../node-agent/requests.ts",
  "founat/src/backends/nft/policy.ts": "../../gateway/policy.ts",
  "test/bench/program.ts": "@egress-nat/operator",
  "test/e2e/bed.e2e.test.ts": "../bed/cluster/cluster.ts",
};

let folder: string;
/** The files in which the rules of `npm run lint` find an import that they restrict. */
let found: ReadonlySet<string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "imports-"));
  for (const name of ["package.json", "oxlint.config.ts"])
    await copyFile(join(ROOT, name), join(folder, name));
  await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
  for (const [path, specifier] of Object.entries({ ...REFUSED, ...ACCEPTED })) {
    await mkdir(join(folder, dirname(path)), { recursive: true });
    await writeFile(join(folder, path), `import ${JSON.stringify(specifier)};\n`);
  }
  const options = { cwd: folder, preferLocal: true, localDir: ROOT, reject: false } as const;
  const { stdout } = await execa("oxlint", ["--format=json"], options);
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { code?: string; filename: string }[] };
  found = new Set(
    diagnostics
      .filter(({ code }) => code?.includes("no-restricted-imports"))
      .map(({ filename }) => relative(folder, join(folder, filename))),
  );
});
afterAll(() => rm(folder, { recursive: true }));

test.each(Object.entries(REFUSED))("lint refuses that %s imports %s", (path) => {
  expect(found).toContain(path);
});

test.each(Object.entries(ACCEPTED))("lint accepts that %s imports %s", (path) => {
  expect(found).not.toContain(path);
});
