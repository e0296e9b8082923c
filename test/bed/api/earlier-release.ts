/** The API as an earlier release, or another product, has it: with less in its CustomResourceDefinition of Egresses. */

import { API_GROUP, EGRESS_RESOURCE } from "@egress-nat/crds";
import { clusterResource, KubeError, resourcePath, type Transport } from "@egress-nat/kube";
import { waitUntil } from "@egress-nat/tools/system/wait-until";

const DEFINITION = clusterResource(
  "apiextensions.k8s.io/v1",
  "customresourcedefinitions",
  "CustomResourceDefinition",
);

const SCHEMA = "/spec/versions/0/schema/openAPIV3Schema/properties";

/** A network that this release refuses. */
export const NO_NETWORK = "192.0.2.0/33";

/**
 * Does something while the API server takes destinations that are no networks, and has it refuse them again.
 *
 * @param transport an administrator's
 */
export function asEarlierRelease(transport: Transport, work: () => Promise<unknown>): Promise<void> {
  const rules = "spec/properties/destinations/items/x-kubernetes-validations";
  return withoutInDefinition(transport, rules, () => isTaken(transport), work);
}

/**
 * Does something while the definition of Egresses lacks a part.
 *
 * @param transport an administrator's
 * @param part below the schema's properties, as a JSON pointer
 * @param isMissing whether the API server follows: it does after a moment
 */
export async function withoutInDefinition(
  transport: Transport,
  part: string,
  isMissing: () => Promise<boolean>,
  work: () => Promise<unknown>,
): Promise<void> {
  const path = resourcePath(DEFINITION, { name: `${EGRESS_RESOURCE.plural}.${API_GROUP}` });
  const pointer = `${SCHEMA}/${part}`;
  const patch = (operation: object) =>
    transport.request({
      ...{ method: "PATCH", path, contentType: "application/json-patch+json" },
      body: [{ ...operation, path: pointer }],
    });
  const definition = await transport.request({ method: "GET", path });
  const value = pointer
    .split("/")
    .slice(1)
    .reduce<unknown>((within, step) => (within as Readonly<Record<string, unknown>>)[step], definition);
  await patch({ op: "remove" });
  try {
    await waitUntil(isMissing, { what: "the API server to take the definition", timeoutMs: 60_000 });
    await work();
  } finally {
    await patch({ op: "add", value });
    await waitUntil(async () => !(await isMissing()), {
      what: "the API server to take the definition back",
      timeoutMs: 60_000,
    });
  }
}

async function isTaken(transport: Transport): Promise<boolean> {
  try {
    await transport.request({
      method: "POST",
      path: resourcePath(EGRESS_RESOURCE, { namespace: "default" }),
      query: { dryRun: "All" },
      body: {
        apiVersion: EGRESS_RESOURCE.apiVersion,
        kind: EGRESS_RESOURCE.kind,
        metadata: { name: "not-stored" },
        spec: { destinations: [NO_NETWORK] },
      },
    });
    return true;
  } catch (error) {
    if (error instanceof KubeError && error.status === 422) return false;
    throw error;
  }
}
