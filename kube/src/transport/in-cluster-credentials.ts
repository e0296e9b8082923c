import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { KubeError } from "../error.ts";
import type { Authentication, Credentials } from "./credentials.ts";
import { RereadCredentials } from "./reread-credentials.ts";

/** @see https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/ */
const SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

/** @returns the apiserver of the cluster that this program runs in a pod of; undefined outside of one */
export function inClusterServer(): URL | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (!host || !port) return undefined;
  return new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`);
}

/**
 * The credentials of the pod's ServiceAccount. Token and CA are read again and again: both rotate.
 *
 * @param directory holds `token` and `ca.crt`
 */
export function inClusterCredentials(server: URL, directory = SERVICE_ACCOUNT_DIRECTORY): Credentials {
  return new RereadCredentials(server, () => authenticationIn(directory));
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
