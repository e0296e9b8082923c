import type { Credentials, CredentialsOptions } from "./credentials.ts";
import { inClusterCredentials, inClusterServer } from "./in-cluster-credentials.ts";

/**
 * The credentials of a kubeconfig where one is named, of the pod's ServiceAccount inside a cluster, and of kubectl's
 * own kubeconfig ($KUBECONFIG, ~/.kube/config) elsewhere.
 *
 * @throws KubeError InvalidCredentials
 */
export async function loadCredentials(options: CredentialsOptions = {}): Promise<Credentials> {
  const isNamed = options.kubeconfig !== undefined || options.context !== undefined;
  const server = isNamed ? undefined : inClusterServer();
  if (server) return inClusterCredentials(server);
  // Loaded only where it is needed: the library behind it would double the memory of a program in a pod.
  const { kubeconfigCredentials } = await import("./kubeconfig-credentials.ts");
  return kubeconfigCredentials(options);
}
