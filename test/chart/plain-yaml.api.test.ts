import { join } from "node:path";
import { kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { execa } from "execa";
import { afterAll, describe, expect, inject, test } from "vitest";
import type { Rendered } from "./render.ts";

const CONFIG = join(import.meta.dirname, "../../config");
const PLAIN_YAML = join(CONFIG, "kustomize/egress-nat.yaml");

afterAll(async () => {
  const kinds =
    "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings";
  await kubectl("delete", kinds, "-l", "app.kubernetes.io/part-of=egress-nat");
});

async function kubectl(...args: readonly string[]) {
  return execa(await kubectlBinary(), [`--kubeconfig=${inject("kubeconfig")}`, ...args], {
    reject: false,
    all: true,
  });
}

describe.each([
  ["the plain YAML", "egress-nat", ["-f", PLAIN_YAML]],
  ["an overlay", "network", ["-k", join(CONFIG, "samples/kustomize")]],
])("%s", (_, namespace, files) => {
  test("is accepted by the API server, and applying it again changes nothing", async () => {
    const applied = await kubectl("apply", "--server-side", ...files);
    expect(applied.exitCode, applied.all).toBe(0);
    const difference = await kubectl("diff", "--server-side", ...files);
    expect(difference.exitCode, difference.all).toBe(0);
  });

  test("puts everything into one namespace", async () => {
    const { stdout } = await kubectl("get", ...files, "-o=json");
    const { items } = JSON.parse(stdout) as { items: readonly Rendered[] };
    const namespaces = items.flatMap(({ metadata }) => metadata.namespace ?? []);
    expect(new Set(namespaces)).toEqual(new Set([namespace]));
  });
});

test("the plain YAML is small enough for client-side apply", async () => {
  const { exitCode, all } = await kubectl("apply", "--dry-run=server", "-f", PLAIN_YAML);
  expect(exitCode, all).toBe(0);
});

test("the DaemonSet that cleans the nodes is accepted by the API server", async () => {
  const { exitCode, all } = await kubectl(
    ...["apply", "--server-side", "--dry-run=server"],
    ...["-k", join(CONFIG, "kustomize/uninstall")],
  );
  expect(exitCode, all).toBe(0);
});
