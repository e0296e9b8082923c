import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { helmTemplate } from "@egress-nat/tools/chart/helm-template";
import { kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { find, objectsIn, type Rendered, render } from "./render.ts";

const CONFIG = join(import.meta.dirname, "../../config");

const plainYaml = async (path: string) => objectsIn(await readFile(join(CONFIG, path), "utf8"));

async function kustomize(path: string): Promise<readonly Rendered[]> {
  const { stdout } = await execa(await kubectlBinary(), ["kustomize", join(CONFIG, path)]);
  return objectsIn(stdout);
}

/** What `helm install --create-namespace` applies, CRDs too. */
async function installedByHelm(values: object, namespace: string): Promise<readonly Rendered[]> {
  const { stdout } = await helmTemplate({ values, namespace, flags: ["--include-crds"] });
  const ofTheRelease = objectsIn(stdout).filter(({ metadata }) => !metadata.annotations?.["helm.sh/hook"]);
  return [
    {
      apiVersion: "v1",
      kind: "Namespace",
      metadata: {
        name: namespace,
        labels: {
          "app.kubernetes.io/part-of": "egress-nat",
          "pod-security.kubernetes.io/enforce": "privileged",
        },
      },
    },
    ...ofTheRelease.map(withoutHelm),
  ];
}

function withoutHelm(object: Rendered): Rendered {
  return JSON.parse(JSON.stringify(object), (key, value) => {
    const isHelms =
      key.startsWith("helm.sh/") || (key === "app.kubernetes.io/managed-by" && value === "Helm");
    const wasHelms = key === "annotations" && Object.keys(value).length === 0;
    return isHelms || wasHelms ? undefined : value;
  });
}

/** By kind and name: in no order, so that a difference is told with the object's name. */
function byName(objects: readonly Rendered[]): Readonly<Record<string, Rendered>> {
  return Object.fromEntries(objects.map((object) => [nameOf(object), object]));
}

const nameOf = ({ kind, metadata }: Rendered) => `${kind} ${metadata.name}`;

describe("without Helm", () => {
  test.each([
    ["the plain YAML", () => plainYaml("kustomize/egress-nat.yaml")],
    ["the base for overlays", () => kustomize("kustomize")],
  ])("%s holds what `helm install` applies", async (_, objects) => {
    expect(byName(await objects())).toEqual(byName(await installedByHelm({}, "egress-nat")));
  });

  test("an overlay changes namespace, images and networks of the cluster as options and values of Helm do", async () => {
    const values = {
      image: { registry: "registry.example/team", tag: "1.2.3" },
      clusterRanges: ["10.244.0.0/16"],
    };
    const expected = byName((await installedByHelm(values, "network")).map(withSortedEnvironment));
    const objects = (await kustomize("samples/kustomize")).map(withSortedEnvironment);
    expect(byName(objects.map((object) => withScopeOf(expected[nameOf(object)], object)))).toEqual(expected);
  });

  test("nodes are cleaned by the DaemonSet that `helm uninstall` makes", async () => {
    const expected = [withoutHelm(find(await render(), "DaemonSet", "egress-nat-uninstall"))];
    expect(await plainYaml("kustomize/uninstall/nodes.yaml")).toEqual(expected);
    expect(await kustomize("kustomize/uninstall")).toEqual(expected);
  });
});

/** kustomize puts a patched variable first. */
function withSortedEnvironment(object: Rendered): Rendered {
  return JSON.parse(JSON.stringify(object), (key, value) =>
    key === "env" && Array.isArray(value) ? value.toSorted((a, b) => a.name.localeCompare(b.name)) : value,
  );
}

/** kustomize gives a namespace to cluster-wide kinds that it does not know; the API server drops it. */
function withScopeOf(expected: Rendered | undefined, object: Rendered): Rendered {
  const { namespace, ...metadata } = object.metadata;
  return expected?.metadata.namespace === undefined ? { ...object, metadata } : object;
}
