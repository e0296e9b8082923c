import type { SecureContextOptions } from "node:tls";

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
