import { EGRESS_LABEL, EGRESS_RESOURCE } from "@egress-nat/crds";
import {
  ENDPOINT_SLICE_RESOURCE,
  type KubeObject,
  type Resource,
  ResourceClient,
  type Transport,
} from "@egress-nat/kube";

/** Where a test makes objects. */
export interface TestNamespace {
  readonly transport: Transport;
  readonly namespace: string;
}

export async function createObject(
  { transport }: TestNamespace,
  resource: Resource,
  object: object,
): Promise<void> {
  await clientOf(transport, resource).create(object as KubeObject);
}

export async function patchObject(
  { transport, namespace }: TestNamespace,
  resource: Resource,
  name: string,
  change: object,
  subresource?: string,
): Promise<void> {
  await clientOf(transport, resource).patch({ namespace, name }, change, { subresource });
}

function clientOf(transport: Transport, resource: Resource): ResourceClient<KubeObject> {
  return new ResourceClient(transport, resource, (raw) => raw as KubeObject);
}

/**
 * An Egress as operator and EndpointSlice controller leave it.
 *
 * @param addresses of its gateways
 * @returns the name of its EndpointSlice
 */
export async function createServedEgress(
  where: TestNamespace,
  name: string,
  addresses: readonly string[],
  spec: object = {},
): Promise<string> {
  const { namespace } = where;
  await createObject(where, EGRESS_RESOURCE, {
    metadata: { namespace, name },
    spec: { destinations: ["0.0.0.0/0"], ...spec },
  });
  const status = { serviceIPs: ["10.96.0.10"], serviceUID: `service-${name}` };
  await patchObject(where, EGRESS_RESOURCE, name, { status }, "status");
  const metadata = {
    ...{ namespace, name: `${name}-abcde`, labels: { [EGRESS_LABEL]: name } },
    ownerReferences: [serviceOwner(name)],
  };
  const endpoints = addresses.map((address) => gatewayEndpoint(namespace, address));
  await createObject(where, ENDPOINT_SLICE_RESOURCE, { metadata, addressType: "IPv4", endpoints });
  return metadata.name;
}

export function serviceOwner(name: string) {
  return { apiVersion: "v1", kind: "Service", name, uid: `service-${name}`, controller: true };
}

/** Of a gateway that is ready. */
export function gatewayEndpoint(namespace: string, address: string) {
  return {
    addresses: [address],
    conditions: { ready: true },
    targetRef: { kind: "Pod", namespace, name: `gateway-${address}`, uid: `uid-${address}` },
  };
}
