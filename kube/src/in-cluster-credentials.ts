import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Authentication, Credentials, TlsOptions } from "./credentials.ts";
import { KubeError } from "./error.ts";

/** @see https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
const SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

/** kubelet replaces a token well before it expires: half a minute with the old one does no harm. */
const REREAD_AFTER_MS = 30_000;

export interface InClusterOptions {
  /** Directory that holds `token` and `ca.crt`. */
  readonly directory?: string;
  /** URL of the apiserver; from KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT if it is absent. */
  readonly server?: URL;
}

export function isInCluster(env: Readonly<Record<string, string | undefined>> = process.env): boolean {
  return Boolean(env.KUBERNETES_SERVICE_HOST && env.KUBERNETES_SERVICE_PORT);
}

/** The credentials of the pod's ServiceAccount. Token and CA are read again and again: both rotate. */
export function inClusterCredentials(options: InClusterOptions = {}): Credentials {
  return new ServiceAccountCredentials(options.server ?? serverOf(process.env), options.directory);
}

function serverOf(env: Readonly<Record<string, string | undefined>>): URL {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new KubeError(
      "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: run in a pod, or give a kubeconfig",
      { code: "InvalidCredentials", retryable: false },
    );
  }
  return new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`);
}

class ServiceAccountCredentials implements Credentials {
  readonly server: URL;
  readonly #directory: string;
  #current: Authentication | undefined;
  #staleAt = 0;

  constructor(server: URL, directory = SERVICE_ACCOUNT_DIRECTORY) {
    this.server = server;
    this.#directory = directory;
  }

  async read(): Promise<Authentication> {
    if (this.#current && performance.now() < this.#staleAt) return this.#current;
    const token = await this.#readFile("token");
    const ca = await this.#readFile("ca.crt");
    const before = this.#current?.tls;
    const tls: TlsOptions = before?.ca === ca ? before : { ca };
    this.#current = { tls, authorization: `Bearer ${token}` };
    this.#staleAt = performance.now() + REREAD_AFTER_MS;
    return this.#current;
  }

  invalidate(): void {
    this.#staleAt = 0;
  }

  async #readFile(name: string): Promise<string> {
    const path = join(this.#directory, name);
    const complain = (cause?: unknown) =>
      new KubeError(
        `cannot read the ServiceAccount's credentials from ${path}: is automountServiceAccountToken false?`,
        { code: "InvalidCredentials", retryable: true, cause },
      );
    const text = await readFile(path, "utf8").catch((cause) => {
      throw complain(cause);
    });
    if (text.trim() === "") throw complain();
    return text.trim();
  }
}
