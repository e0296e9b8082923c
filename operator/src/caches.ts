/** What the operator watches. Nothing else is asked of the API server again and again. */

import {
  CLUSTER_RANGES_CONFIG_MAP,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  Egress,
  egressKeys,
  orInvalid,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import {
  Cache,
  type CacheOptions,
  CacheSet,
  CONFIG_MAP_RESOURCE,
  ENDPOINT_SLICE_RESOURCE,
  EndpointSlice,
  type KubeObject,
  type Logger,
  NAMESPACE_RESOURCE,
  NODE_RESOURCE,
  type Transport,
} from "@egress-nat/kube";
import { parsePublished } from "./cluster-ranges/published.ts";
import { NodeHead, SERVICE_CIDR_RESOURCE, ServiceAddresses, ServiceCidr } from "./cluster-ranges/sources.ts";
import { CHILD_RESOURCES, type ChildKind } from "./egress/children/index.ts";
import { NamespaceHead } from "./egress/namespaces.ts";
import { childParser, forEachChild, type ObservedOf } from "./egress/observed.ts";
import type { StoredEgress } from "./egress/status.ts";
import { BY_EGRESS, BY_NODE, SliceHead } from "./slices/slice-head.ts";

export interface CachesOptions {
  readonly transport: Transport;
  readonly logger: Logger;
  /** The product's: of the operator's Lease, and of what it publishes. */
  readonly namespace: string;
  /** Whether external IPs and load balancers' addresses of Services are in the cluster, too. */
  readonly serviceAddresses: boolean;
}

type CacheMaker = <T extends KubeObject>(options: Omit<CacheOptions<T>, "transport" | "logger">) => Cache<T>;

export type Caches = ReturnType<typeof createCaches>;

export function createCaches({ transport, logger, namespace, serviceAddresses }: CachesOptions) {
  const cache: CacheMaker = (options) => new Cache({ transport, logger, ...options });
  const egresses = cache<StoredEgress>({ resource: EGRESS_RESOURCE, parse: orInvalid(Egress) });
  // A child has the name of its Egress, so both have one key.
  const children = forEachChild<{ readonly [K in ChildKind]: Cache<ObservedOf<K>> }>((kind) =>
    cache({ resource: CHILD_RESOURCES[kind], parse: childParser(kind), labelSelector: EGRESS_LABEL }),
  );
  const slices = cache({
    resource: SLICE_RESOURCE,
    parse: (raw) => SliceHead.parse(raw),
    indexes: { [BY_NODE]: ({ nodeName }) => [nodeName], [BY_EGRESS]: egressKeys },
  });
  const endpointSlices = cache({
    resource: ENDPOINT_SLICE_RESOURCE,
    parse: (raw) => EndpointSlice.parse(raw),
    labelSelector: EGRESS_LABEL,
    indexes: {
      [BY_EGRESS]: egressKeys,
      [BY_NODE]: ({ endpoints }) => endpoints.flatMap(({ nodeName }) => nodeName ?? []),
    },
  });
  const networks = networkCaches(cache, namespace);
  const { serviceCidrs, services, clusterRanges, nodes } = networks;
  const namespaces = cache({
    resource: NAMESPACE_RESOURCE,
    parse: (raw): NamespaceHead => NamespaceHead.parse(raw),
    metadataOnly: true,
  });
  const all = new CacheSet([
    ...[egresses, ...Object.values(children), slices, endpointSlices, serviceCidrs],
    ...(serviceAddresses ? [services] : []),
    ...[clusterRanges, nodes, namespaces],
  ]);
  return { egresses, children, slices, endpointSlices, ...networks, namespaces, all };
}

function networkCaches(cache: CacheMaker, namespace: string) {
  return {
    serviceCidrs: cache({
      resource: SERVICE_CIDR_RESOURCE,
      parse: (raw): ServiceCidr => ServiceCidr.parse(raw),
      mayBeUnserved: true,
    }),
    /** All Services of the cluster: empty where their addresses are not asked for. */
    services: cache({
      name: "serviceAddresses",
      resource: CHILD_RESOURCES.service,
      parse: (raw): ServiceAddresses => ServiceAddresses.parse(raw),
    }),
    clusterRanges: cache({
      resource: CONFIG_MAP_RESOURCE,
      parse: parsePublished,
      namespace,
      fieldSelector: `metadata.name=${CLUSTER_RANGES_CONFIG_MAP}`,
    }),
    nodes: cache({ resource: NODE_RESOURCE, parse: (raw): NodeHead => NodeHead.parse(raw) }),
  };
}
