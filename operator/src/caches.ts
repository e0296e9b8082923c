/** What the operator keeps of the API: one store per resource that it watches. */

import {
  CLUSTER_RANGES_CONFIG_MAP,
  ClusterRanges,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  Egress,
  egressKeys,
  isInvalid,
  orInvalid,
  SLICE_RESOURCE,
} from "@egress-nat/crds";
import {
  type Change,
  CONFIG_MAP_RESOURCE,
  ENDPOINT_SLICE_RESOURCE,
  type Endpoint,
  EndpointSlice,
  isOfService,
  type KubeObject,
  mergeEndpoints,
  NAMESPACE_RESOURCE,
  NODE_RESOURCE,
  objectKey,
  Reflector,
  type ReflectorOptions,
  type Resource,
  Store,
} from "@egress-nat/kube";
import { outsideTest } from "./cluster-ranges/outside.ts";
import {
  NodeHead,
  SERVICE_CIDR_RESOURCE,
  SERVICE_RESOURCE,
  ServiceAddresses,
  ServiceCidr,
} from "./cluster-ranges/sources.ts";
import { CHILD_RESOURCES, type ChildKind } from "./egress/children/index.ts";
import { NamespaceHead } from "./egress/namespaces.ts";
import { type ObservedChildren, type ObservedDeployment, parseChild } from "./egress/observed.ts";
import { belongsTo } from "./egress/plan.ts";
import { isPaused } from "./egress/rollout.ts";
import type { StoredEgress } from "./egress/status.ts";
import { SliceHead } from "./slices/orphans.ts";

/** One collection as its watch sees it: whatever its objects are. */
export interface Watched {
  readonly resource: Resource;
  reflector(options: Pick<ReflectorOptions<KubeObject>, "transport" | "logger" | "namespace">): Watch;
  onChange(listener: (change: Pick<Change<KubeObject>, "type" | "object">) => void): void;
}

/** A reflector without the type of its objects. */
export type Watch = Pick<Reflector<KubeObject>, "run" | "state" | "whenSynced">;

type Selection = Pick<
  ReflectorOptions<KubeObject>,
  "namespace" | "labelSelector" | "fieldSelector" | "metadataOnly" | "mayBeUnserved"
>;

/** One collection: where it is, what is kept of it, and what was seen. */
class Cache<T extends KubeObject> implements Watched {
  readonly resource: Resource;
  readonly store = new Store<T>();
  readonly #parse: (raw: unknown) => T;
  readonly #selection: Selection;

  constructor(resource: Resource, parse: (raw: unknown) => T, selection: Selection = {}) {
    this.resource = resource;
    this.#parse = parse;
    this.#selection = selection;
  }

  reflector(options: Parameters<Watched["reflector"]>[0]): Watch {
    const { resource, store } = this;
    return new Reflector({
      ...options,
      resource,
      store,
      ...this.#selection,
      parse: this.#parse,
    });
  }

  onChange(listener: Parameters<Watched["onChange"]>[0]): void {
    this.store.onChange(listener);
  }
}

const SLICES_BY_NODE = "node";
const BY_EGRESS = "egress";

/** All that the operator sees. Nothing else is asked of the API server again and again. */
export class Caches {
  readonly egresses = new Cache<StoredEgress>(EGRESS_RESOURCE, orInvalid(Egress));
  readonly slices = new Cache(SLICE_RESOURCE, (raw) => SliceHead.parse(raw));
  readonly nodes = new Cache(NODE_RESOURCE, (raw): NodeHead => NodeHead.parse(raw));
  readonly namespaces = new Cache(NAMESPACE_RESOURCE, (raw): NamespaceHead => NamespaceHead.parse(raw), {
    metadataOnly: true,
  });
  readonly serviceCidrs = new Cache(SERVICE_CIDR_RESOURCE, (raw): ServiceCidr => ServiceCidr.parse(raw), {
    mayBeUnserved: true,
  });
  /** All Services of the cluster: empty where their addresses are not asked for. */
  readonly services = new Cache(SERVICE_RESOURCE, (raw): ServiceAddresses => ServiceAddresses.parse(raw));
  readonly clusterRanges: Cache<ClusterRanges>;
  readonly endpointSlices = new Cache(ENDPOINT_SLICE_RESOURCE, (raw) => EndpointSlice.parse(raw), {
    labelSelector: EGRESS_LABEL,
  });
  #isOutside: (address: string) => boolean = () => false;
  readonly children = {
    serviceAccount: childCache("serviceAccount"),
    role: childCache("role"),
    roleBinding: childCache("roleBinding"),
    service: childCache("service"),
    deployment: childCache("deployment"),
    disruptionBudget: childCache("disruptionBudget"),
  } as const;

  /** @param namespace where the operator publishes the networks of the cluster */
  constructor(namespace: string) {
    this.clusterRanges = new Cache(CONFIG_MAP_RESOURCE, publishedRanges, {
      namespace,
      fieldSelector: `metadata.name=${CLUSTER_RANGES_CONFIG_MAP}`,
    });
    this.clusterRanges.store.onChange(() => {
      const { data } = this.published() ?? {};
      // Otherwise they are published again in a moment.
      if (data !== undefined) this.#isOutside = outsideTest(data.ranges);
    });
    this.slices.store.addIndex(SLICES_BY_NODE, ({ nodeName }) => [nodeName]);
    this.slices.store.addIndex(BY_EGRESS, egressKeys);
    this.endpointSlices.store.addIndex(BY_EGRESS, egressKeys);
  }

  all(): readonly Watched[] {
    return [
      ...[this.egresses, this.slices, this.nodes, this.namespaces, this.endpointSlices],
      ...[this.serviceCidrs, this.clusterRanges],
      ...Object.values(this.children),
    ];
  }

  /** Whether an address is in no network of the cluster, as far as they are published. */
  isOutside(address: string): boolean {
    return this.#isOutside(address);
  }

  /** Whether an address is in a network that is published as the cluster's. */
  isInside(address: string): boolean {
    return this.published()?.data !== undefined && !this.isOutside(address);
  }

  /** What agents and gateways know of the cluster's networks; without data where nothing is published that they understand. */
  published(): ClusterRanges | undefined {
    return this.clusterRanges.store.list()[0];
  }

  /** The children of an Egress are found by its key: they have its name. */
  childrenOf(key: string): ObservedChildren {
    const { serviceAccount, role, roleBinding, service, deployment, disruptionBudget } = this.children;
    return {
      serviceAccount: serviceAccount.store.get(key),
      role: role.store.get(key),
      roleBinding: roleBinding.store.get(key),
      service: service.store.get(key),
      deployment: deployment.store.get(key),
      disruptionBudget: disruptionBudget.store.get(key),
    };
  }

  /** Of Egresses that are there and not paused, by key: a paused one keeps no other one waiting. */
  deploymentsToUpgrade(): readonly (readonly [key: string, deployment: ObservedDeployment])[] {
    return this.children.deployment.store.list().flatMap((deployment) => {
      const key = objectKey(deployment);
      const egress = this.egresses.store.get(key);
      return egress === undefined || isPaused(egress) ? [] : [[key, deployment] as const];
    });
  }

  /** The pods behind the Service of an Egress, as long as that is the Egress's own. */
  gatewaysOf(key: string): readonly Endpoint[] {
    const egress = this.egresses.store.get(key);
    const service = this.children.service.store.get(key);
    if (egress === undefined || service === undefined || !belongsTo(egress, service)) return [];
    const slices = this.endpointSlices.store.byIndex(BY_EGRESS, key);
    return mergeEndpoints(slices.filter((slice) => isOfService(slice, service.metadata)));
  }

  /** How many Egresses are not understood. */
  invalidEgresses(): number {
    return this.egresses.store.list().filter(isInvalid).length;
  }

  /** How many clients an Egress has. */
  clientsOf(key: string): number {
    return this.slicesOfEgress(key).reduce((count, { clients }) => count + clients, 0);
  }

  /** @param key "namespace/name" */
  slicesOfEgress(key: string): readonly SliceHead[] {
    return this.slices.store.byIndex(BY_EGRESS, key);
  }

  slicesOfNode(name: string): readonly SliceHead[] {
    return this.slices.store.byIndex(SLICES_BY_NODE, name);
  }
}

/** Without data where they are not understood: the operator publishes them in place of that version. */
function publishedRanges(raw: unknown): ClusterRanges {
  return ClusterRanges.safeParse(raw).data ?? ClusterRanges.omit({ data: true }).parse(raw);
}

function childCache<K extends ChildKind>(kind: K): Cache<NonNullable<ObservedChildren[K]>> {
  const parse = parseChild[kind] as (raw: unknown) => NonNullable<ObservedChildren[K]>;
  return new Cache(CHILD_RESOURCES[kind], parse, { labelSelector: EGRESS_LABEL });
}
