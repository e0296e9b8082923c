import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { exists } from "@egress-nat/tools/system/cache";
import { execa } from "execa";

const VALIDITY_DAYS = "365";

// The defaults of a distribution's openssl.cnf would make every certificate a CA.
const OPENSSL_CONFIG = "[req]\ndistinguished_name = subject\n[subject]\n";

export interface Identity {
  readonly commonName: string;
  /** Kubernetes reads organizations as groups. */
  readonly organization?: string;
  /** DNS names and IP addresses under which it serves. */
  readonly hosts?: readonly string[];
}

/** Paths of a certificate and its private key, PEM. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** A cluster's own certificate authority: a folder of PEM files, made by openssl. */
export class Authority {
  readonly folder: string;
  /** Path of the authority's certificate. */
  readonly certificate: string;
  readonly #key: string;
  readonly #config: string;

  private constructor(folder: string) {
    this.folder = folder;
    this.certificate = join(folder, "ca.crt");
    this.#key = join(folder, "ca.key");
    this.#config = join(folder, "openssl.cnf");
  }

  /** Opens the authority of a folder; makes it when there is none yet. */
  static async open(folder: string): Promise<Authority> {
    const authority = new Authority(folder);
    if (await exists(authority.certificate)) return authority;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(authority.#config, OPENSSL_CONFIG);
    await authority.#request("ca", "/CN=test-cluster", [
      "basicConstraints=critical,CA:TRUE",
      "keyUsage=critical,keyCertSign,digitalSignature",
    ]);
    return authority;
  }

  /** A certificate for client and server use; the one made before, if there is one of that name. */
  async issue(name: string, identity: Identity): Promise<KeyPair> {
    const pair = { certificate: join(this.folder, `${name}.crt`), key: join(this.folder, `${name}.key`) };
    if (await exists(pair.certificate)) return pair;
    const organization = identity.organization === undefined ? "" : `/O=${identity.organization}`;
    const hosts = identity.hosts ?? [];
    await this.#request(name, `${organization}/CN=${identity.commonName}`, [
      "basicConstraints=critical,CA:FALSE",
      "extendedKeyUsage=clientAuth,serverAuth",
      ...(hosts.length === 0 ? [] : [`subjectAltName=${hosts.map(subjectAltName).join(",")}`]),
    ]);
    return pair;
  }

  /** A bare key pair, as for signing ServiceAccount tokens. `certificate` is the public key. */
  async keyPair(name: string): Promise<KeyPair> {
    const pair = { certificate: join(this.folder, `${name}.pub`), key: join(this.folder, `${name}.key`) };
    if (await exists(pair.certificate)) return pair;
    await execa("openssl", ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", pair.key]);
    await execa("openssl", ["ec", "-in", pair.key, "-pubout", "-out", pair.certificate]);
    return pair;
  }

  /** A self-contained kubeconfig; files of a node may not be readable where it is used. */
  async kubeconfig(server: string, pair: KeyPair): Promise<string> {
    const base64 = async (file: string): Promise<string> => (await readFile(file)).toString("base64");
    return JSON.stringify(
      {
        apiVersion: "v1",
        kind: "Config",
        clusters: [
          { name: "test", cluster: { server, "certificate-authority-data": await base64(this.certificate) } },
        ],
        users: [
          {
            name: "user",
            user: {
              "client-certificate-data": await base64(pair.certificate),
              "client-key-data": await base64(pair.key),
            },
          },
        ],
        contexts: [{ name: "test", context: { cluster: "test", user: "user" } }],
        "current-context": "test",
      },
      undefined,
      2,
    );
  }

  async #request(name: string, subject: string, extensions: readonly string[]): Promise<void> {
    const issuer = name === "ca" ? [] : ["-CA", this.certificate, "-CAkey", this.#key];
    await execa("openssl", [
      "req",
      "-x509",
      "-config",
      this.#config,
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      "-days",
      VALIDITY_DAYS,
      "-subj",
      subject,
      ...issuer,
      ...extensions.flatMap((extension) => ["-addext", extension]),
      "-keyout",
      join(this.folder, `${name}.key`),
      "-out",
      join(this.folder, `${name}.crt`),
    ]);
  }
}

function subjectAltName(host: string): string {
  return /^[0-9.]+$|:/.test(host) ? `IP:${host}` : `DNS:${host}`;
}
