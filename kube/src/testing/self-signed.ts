import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** A key and a certificate for 127.0.0.1, which is its own authority, as PEM. */
export async function selfSigned(): Promise<{ readonly cert: string; readonly key: string }> {
  const folder = await mkdtemp(join(tmpdir(), "self-signed-"));
  try {
    const [certFile, keyFile] = [join(folder, "cert"), join(folder, "key")];
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const files = ["-keyout", keyFile, "-out", certFile];
    await promisify(execFile)("openssl", ["req", "-x509", ...curve, ...subject, ...files]);
    const [cert, key] = await Promise.all([readFile(certFile, "utf8"), readFile(keyFile, "utf8")]);
    return { cert, key };
  } finally {
    await rm(folder, { recursive: true });
  }
}
