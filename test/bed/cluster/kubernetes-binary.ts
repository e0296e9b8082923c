import { join } from "node:path";
import { goProgram } from "@egress-nat/tools/system/go-program";
import { z } from "zod";

/** Which of the Kubernetes versions that the product supports. */
export const KubernetesVersion = z.enum(["newest", "oldest"]);
export type KubernetesVersion = z.infer<typeof KubernetesVersion>;

/** Where the modules of a version are named, beside kubernetes/main.go. */
const MOD_FILES: Readonly<Record<KubernetesVersion, string>> = { newest: "go.mod", oldest: "oldest.mod" };

/**
 * The executable that is every program of a cluster (see kubernetes/main.go), built on first use: some eight minutes
 * on two cores with empty Go caches.
 *
 * @returns its path in the cache
 */
export function kubernetesBinary(version: KubernetesVersion): Promise<string> {
  return goProgram({
    name: "kubernetes",
    folder: join(import.meta.dirname, "kubernetes"),
    modFile: MOD_FILES[version],
    versionOf: "k8s.io/kubernetes",
    // Without a version the scheduler and kubectl refuse the server.
    linkerFlags: (number) => {
      const [major, minor] = number.split(".");
      const variable = "k8s.io/component-base/version";
      return [
        `-X ${variable}.gitVersion=v${number}`,
        `-X ${variable}.gitMajor=${major}`,
        `-X ${variable}.gitMinor=${minor}`,
      ];
    },
  });
}
