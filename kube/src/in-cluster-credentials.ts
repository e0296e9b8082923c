import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Authentication, Credentials } from "./credentials.ts";
import { KubeError } from "./error.ts";
import { RereadCredentials } from "./reread-credentials.ts";

/** @see https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
const SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

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
  const { server = serverOf(process.env), directory = SERVICE_ACCOUNT_DIRECTORY } = options;
  return new RereadCredentials(server, () => authenticationIn(directory));
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

async function authenticationIn(directory: string): Promise<Authentication> {
  const token = await readCredential(join(directory, "token"));
  const ca = await readCredential(join(directory, "ca.crt"));
  return { tls: { ca }, authorization: `Bearer ${token}` };
}

async function readCredential(path: string): Promise<string> {
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
