import { randomBytes } from "node:crypto";
import type { Transport } from "../transport.ts";

/** A namespace of its own for a test file: files share one apiserver, and none of them cleans up for another. */
export async function createNamespace(transport: Transport, purpose: string): Promise<string> {
  const name = `${purpose}-${randomBytes(4).toString("hex")}`;
  await transport.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name } } });
  return name;
}
