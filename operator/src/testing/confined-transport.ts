import { NAMESPACE_RESOURCE, NODE_RESOURCE, type Transport } from "@egress-nat/kube";
import { SERVICE_CIDR_RESOURCE } from "../cluster-ranges/sources.ts";

const COLLECTION = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)\/([^/]+)$/;
const OF_THE_CLUSTER: readonly string[] = [NODE_RESOURCE, NAMESPACE_RESOURCE, SERVICE_CIDR_RESOURCE].map(
  ({ plural }) => plural,
);

/**
 * The API with one namespace in it: an operator that lists and watches everything sees only what is there.
 * Two of them in namespaces of their own do not do each other's work, and what other tests have left is not in the way.
 */
export function confinedTo(namespace: string, transport: Transport): Transport {
  return {
    request: (options) => transport.request(options),
    stream: (options) => transport.stream({ ...options, path: confinedPath(namespace, options.path) }),
    close: () => transport.close(),
  };
}

function confinedPath(namespace: string, path: string): string {
  return path.replace(COLLECTION, (all, group: string, plural: string) =>
    OF_THE_CLUSTER.includes(plural) ? all : `${group}/namespaces/${namespace}/${plural}`,
  );
}
