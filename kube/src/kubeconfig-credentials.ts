import type { RequestOptions } from "node:https";
import { isDeepStrictEqual } from "node:util";
import { KubeConfig } from "@kubernetes/client-node";
import type { Authentication, Credentials, CredentialsOptions, TlsOptions } from "./credentials.ts";
import { KubeError } from "./error.ts";

/** Certificates and tokens in files, and those of exec plugins, may be replaced at any time. */
const REREAD_AFTER_MS = 30_000;

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
  return new KubeconfigCredentials(config, server);
}

class KubeconfigCredentials implements Credentials {
  readonly server: URL;
  readonly #config: KubeConfig;
  #current: Authentication | undefined;
  #staleAt = 0;

  constructor(config: KubeConfig, server: URL) {
    this.#config = config;
    this.server = server;
  }

  async read(): Promise<Authentication> {
    if (this.#current && performance.now() < this.#staleAt) return this.#current;
    const options: RequestOptions = {};
    try {
      await this.#config.applyToHTTPSOptions(options);
    } catch (cause) {
      throw invalid(`cannot load the credentials of ${this.#config.getCurrentContext()}`, cause);
    }
    const tls = tlsOptions(options);
    const before = this.#current?.tls;
    this.#current = {
      tls: isDeepStrictEqual(before, tls) && before ? before : tls,
      authorization: authorization(options),
    };
    this.#staleAt = performance.now() + REREAD_AFTER_MS;
    return this.#current;
  }

  invalidate(): void {
    this.#staleAt = 0;
  }
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
