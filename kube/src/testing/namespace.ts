import { randomBytes } from "node:crypto";
import type { Transport } from "../transport/transport.ts";

/** A namespace of its own for a test file: files share one apiserver, and none of them cleans up for another. */
export async function createNamespace(transport: Transport, purpose: string): Promise<string> {
  const name = `${purpose}-${randomBytes(4).toString("hex")}`;
  // Applied: a busy API server may ask for a request again that it has carried out.
  await transport.request({
    method: "PATCH",
    path: `/api/v1/namespaces/${name}`,
    query: { fieldManager: "test" },
    contentType: "application/apply-patch+yaml",
    body: { apiVersion: "v1", kind: "Namespace", metadata: { name } },
  });
  return name;
}
