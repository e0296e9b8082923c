import type { SecureContextOptions } from "node:tls";
import { inClusterCredentials, isInCluster } from "./in-cluster-credentials.ts";

export type TlsOptions = Pick<SecureContextOptions, "ca" | "cert" | "key" | "pfx" | "passphrase"> & {
  readonly rejectUnauthorized?: boolean | undefined;
  readonly servername?: string | undefined;
};

export interface Authentication {
  /** The same object as long as nothing in it has changed. */
  readonly tls: TlsOptions;
  /** Value of the header Authorization, where the server wants one. */
  readonly authorization: string | undefined;
}

/** Who we are to which apiserver. */
export interface Credentials {
  readonly server: URL;
  /**
   * What to present now. Cheap: files are read again only after a while.
   *
   * @throws KubeError InvalidCredentials
   */
  read(): Promise<Authentication>;
  /** Makes the next {@link read} go to the files again: the server refused what we had. */
  invalidate(): void;
}

export interface CredentialsOptions {
  /** Path of a kubeconfig file. */
  readonly kubeconfig?: string | undefined;
  /** Context of the kubeconfig, where it is not the current one. */
  readonly context?: string | undefined;
}

/**
 * The credentials of a kubeconfig where one is named, of the pod's ServiceAccount inside a cluster, and of kubectl's
 * own kubeconfig ($KUBECONFIG, ~/.kube/config) elsewhere.
 *
 * @throws KubeError InvalidCredentials
 */
export async function loadCredentials(options: CredentialsOptions = {}): Promise<Credentials> {
  if (options.kubeconfig === undefined && options.context === undefined && isInCluster()) {
    return inClusterCredentials();
  }
  // Loaded only where it is needed: the library behind it would double the memory of a program in a pod.
  const { kubeconfigCredentials } = await import("./kubeconfig-credentials.ts");
  return kubeconfigCredentials(options);
}
