import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { kubernetesBinary } from "../cluster/kubernetes-binary.ts";
import { BackgroundProcess } from "../system/process.ts";

/**
 * Some of Kubernetes' own controllers beside the apiserver of the API tests, which has none. Each acts with its own
 * ServiceAccount, as in a cluster.
 *
 * @param names as the flag `--controllers` has them
 */
export async function startControllers(
  names: readonly string[],
  flags: readonly string[] = [],
): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), "egress-nat-controllers-"));
  const controllers = await BackgroundProcess.start({
    name: "controller-manager",
    command: [
      ...[
        await kubernetesBinary("newest"),
        "kube-controller-manager",
        `--kubeconfig=${inject("kubeconfig")}`,
      ],
      ...[`--controllers=${names.join(",")}`, "--use-service-account-credentials", "--leader-elect=false"],
      ...["--secure-port=0", ...flags],
    ],
    folder,
    lifetime: "owner",
  });
  return {
    async [Symbol.asyncDispose]() {
      await controllers.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
