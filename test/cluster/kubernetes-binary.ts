import { join } from "node:path";
import { goProgram } from "../system/go-program.ts";

/**
 * The executable that is every program of a cluster (see kubernetes/main.go), built on first use: some eight minutes
 * on two cores with empty Go caches.
 *
 * @returns its path in the cache
 */
export function kubernetesBinary(): Promise<string> {
  return goProgram({
    name: "kubernetes",
    folder: join(import.meta.dirname, "kubernetes"),
    versionOf: "k8s.io/kubernetes",
    // Without a version the scheduler and kubectl refuse the server.
    linkerFlags: (version) => {
      const [major, minor] = version.split(".");
      const variable = "k8s.io/component-base/version";
      return [
        `-X ${variable}.gitVersion=v${version}`,
        `-X ${variable}.gitMajor=${major}`,
        `-X ${variable}.gitMinor=${minor}`,
      ];
    },
  });
}
