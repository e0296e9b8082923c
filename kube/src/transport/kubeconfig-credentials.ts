import type { RequestOptions } from "node:https";
import { KubeConfig } from "@kubernetes/client-node";
import { KubeError } from "../error.ts";
import type { Authentication, Credentials, CredentialsOptions, TlsOptions } from "./credentials.ts";
import { RereadCredentials } from "./reread-credentials.ts";

/** The credentials of a kubeconfig: client certificates, tokens, token files, exec plugins. */
export function kubeconfigCredentials(options: CredentialsOptions): Credentials {
  const config = new KubeConfig();
  const origin = options.kubeconfig ?? "the default kubeconfig ($KUBECONFIG, ~/.kube/config)";
  try {
    if (options.kubeconfig === undefined) config.loadFromDefault();
    else config.loadFromFile(options.kubeconfig);
  } catch (cause) {
    throw invalid(`cannot read ${origin}`, cause);
  }
  if (options.context !== undefined) config.setCurrentContext(options.context);
  const cluster = config.getCurrentCluster();
  if (!cluster) {
    throw invalid(`${origin} has no cluster for its context ${JSON.stringify(config.getCurrentContext())}`);
  }
  const server = URL.parse(cluster.server);
  if (server?.protocol !== "https:") {
    throw invalid(
      `${origin}: the cluster's server must be an https URL, not ${JSON.stringify(cluster.server)}`,
    );
  }
  if (cluster.proxyUrl) {
    throw invalid(`${origin}: proxy-url is not supported, remove it and reach ${server.host} directly`);
  }
  return new RereadCredentials(server, () => authenticationOf(config));
}

async function authenticationOf(config: KubeConfig): Promise<Authentication> {
  const options: RequestOptions = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    throw invalid(`cannot load the credentials of ${config.getCurrentContext()}`, cause);
  }
  return { tls: tlsOptions(options), authorization: authorization(options) };
}

function tlsOptions(options: RequestOptions): TlsOptions {
  const { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername } = options;
  const given = { ca, cert, key, pfx, passphrase, rejectUnauthorized, servername };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function authorization(options: RequestOptions): string | undefined {
  if (options.auth) return `Basic ${Buffer.from(options.auth).toString("base64")}`;
  return new Map(Object.entries(options.headers ?? {})).get("Authorization")?.toString();
}

function invalid(message: string, cause?: unknown): KubeError {
  return new KubeError(message, { code: "InvalidCredentials", retryable: false, cause });
}
