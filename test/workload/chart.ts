import { join } from "node:path";

const CHART = join(import.meta.dirname, "../../config/helm/egress-nat");

/** The Helm release of the product in test clusters. */
export const RELEASE = { name: "egress-nat", namespace: "egress-nat" } as const;

/**
 * Arguments with which helm installs the product from the checkout, with the images that a test cluster's nodes have,
 * and waits until it runs.
 *
 * @param clusterRanges networks of pods, Services and nodes
 */
export function installArguments(clusterRanges: readonly string[]): string[] {
  const values = {
    image: { registry: "docker.io/library", tag: "test", pullPolicy: "Never" },
    clusterRanges,
    // The nodes are emulated: what stands by takes time from what works.
    "operator.replicas": 1,
  };
  return [
    ...["upgrade", "--install", RELEASE.name, CHART],
    ...["--namespace", RELEASE.namespace, "--create-namespace"],
    ...Object.entries(values).flatMap(([name, value]) => ["--set-json", `${name}=${JSON.stringify(value)}`]),
    ...["--wait", "--timeout", "5m"],
  ];
}
