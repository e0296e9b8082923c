import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { requiredVersion } from "@egress-nat/tools/system/go-program";
import { expect, test } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");

/** What Helm refuses to install below. */
const { kubeVersion } = parse(read("config/helm/egress-nat/Chart.yaml")) as { kubeVersion: string };

const minor = (version: string) => version.split(".").slice(0, 2).join(".");

test.each([
  ["the test cluster that is the oldest", "test/bed/cluster/kubernetes/oldest.mod", "k8s.io/kubernetes"],
  ["the API server that judges CRDs and policies", "test/chart/oldest-apiserver/go.mod", "k8s.io/apiserver"],
])("%s is of the oldest Kubernetes that the chart names", (_, goMod, module) => {
  const version = requiredVersion(read(goMod), module).replace(/^0\./, "1.");
  expect(`>=${minor(version)}.0-0`).toBe(kubeVersion);
});

test("documents that name a minimum name the chart's", () => {
  const documents = globSync(["*.md", "{docs,config}/**/*.md"], { cwd: root });
  const named = documents.flatMap((path) => read(path).match(/Kubernetes 1\.\d+ or later/g) ?? []);
  expect(named.length).toBeGreaterThan(1);
  expect(new Set(named)).toEqual(new Set([`Kubernetes ${kubeVersion.slice(2, -4)} or later`]));
});

test("documents that name a Node version name that of package.json", () => {
  const { engines } = JSON.parse(read("package.json")) as { engines: { node: string } };
  const documents = globSync(["*.md", "{docs,config,addresses,founat}/**/*.md"], {
    cwd: root,
    exclude: (path) => path.includes("node_modules"),
  });
  const named = documents.flatMap((path) => read(path).match(/Node \d+ or later/g) ?? []);
  expect(named.length).toBeGreaterThan(1);
  expect(new Set(named)).toEqual(new Set([`Node ${engines.node.replace(">=", "")} or later`]));
});
