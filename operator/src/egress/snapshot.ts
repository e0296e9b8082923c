/** What the operator sees of an Egress at one moment, as plain data. */

import { isInvalid } from "@egress-nat/crds";
import {
  type Cache,
  type Endpoint,
  type EndpointSlice,
  isOfService,
  mergeEndpoints,
  objectKey,
} from "@egress-nat/kube";
import type { PublishedRanges } from "../cluster-ranges/published.ts";
import type { NodeHead } from "../cluster-ranges/sources.ts";
import { BY_EGRESS, type SliceHead } from "../slices/slice-head.ts";
import type { ChildKind } from "./children/index.ts";
import { allowedNamespaces, type NamespaceHead } from "./namespaces.ts";
import { forEachChild, type ObservedDeployment, type ObservedOf } from "./observed.ts";
import { belongsTo, type EgressSnapshot } from "./plan.ts";
import { isPaused } from "./rollout.ts";
import type { StatusInput, StoredEgress } from "./status.ts";

/** What its status tells of beside its children. */
export type Surroundings = Pick<
  StatusInput,
  | "gateways"
  | "gatewayReasons"
  | "gatewayReports"
  | "silentNodes"
  | "clients"
  | "isOutside"
  | "allowedNamespaces"
>;

/** What is watched, as far as Egresses depend on it. */
export interface EgressCaches {
  readonly egresses: Cache<StoredEgress>;
  readonly children: { readonly [K in ChildKind]: Cache<ObservedOf<K>> };
  readonly slices: Cache<SliceHead>;
  readonly endpointSlices: Cache<EndpointSlice>;
  readonly namespaces: Cache<NamespaceHead>;
  readonly nodes: Cache<NodeHead>;
}

/** The caches, read for one Egress. */
export class EgressView {
  readonly #caches: EgressCaches;
  readonly #ranges: PublishedRanges;

  constructor(caches: EgressCaches, ranges: PublishedRanges) {
    this.#caches = caches;
    this.#ranges = ranges;
  }

  /** @returns undefined of an Egress that is gone, or about to go */
  snapshot(key: string): EgressSnapshot | undefined {
    const { egresses, children } = this.#caches;
    const egress = egresses.store.get(key);
    if (egress === undefined || egress.metadata.deletionTimestamp !== undefined) return undefined;
    const gateways = this.gateways(key);
    return { egress, children: forEachChild((kind) => children[kind].store.get(key)), gateways };
  }

  /** @param gatewayReasons what its gateways say of themselves */
  surroundings(egress: StoredEgress, gatewayReasons: Surroundings["gatewayReasons"]): Surroundings {
    const { namespaces, nodes } = this.#caches;
    const key = objectKey(egress);
    const slices = this.#caches.slices.store.byIndex(BY_EGRESS, key);
    const gateways = this.gateways(key);
    const nodesOfThem = gateways.flatMap(({ nodeName }) => nodeName ?? []);
    return {
      ...{ gateways, gatewayReasons },
      silentNodes: new Set(nodesOfThem.filter((node) => nodes.store.get(node)?.isSilent)),
      // A node that nobody hears of cannot take back what it has said.
      gatewayReports: slices.flatMap(({ nodeName: node, suspects }) =>
        (nodes.store.get(node)?.isSilent ?? true) ? [] : suspects.map((report) => ({ ...report, node })),
      ),
      clients: slices.reduce((count, { clients }) => count + clients, 0),
      isOutside: this.#ranges.isOutside,
      allowedNamespaces:
        allowedNamespaces(egress, namespaces.store.list()) ??
        (isInvalid(egress) ? egress.status?.allowedNamespaces : undefined),
    };
  }

  /** The pods behind the Service of an Egress, as long as that is the Egress's own. */
  gateways(key: string): readonly Endpoint[] {
    const { egresses, children, endpointSlices } = this.#caches;
    const egress = egresses.store.get(key);
    const service = children.service.store.get(key);
    if (egress === undefined || service === undefined || !belongsTo(egress, service)) return [];
    const slices = endpointSlices.store.byIndex(BY_EGRESS, key);
    return mergeEndpoints(slices.filter((slice) => isOfService(slice, service.metadata)));
  }

  /** Of Egresses that are there and not paused, by key: a paused one keeps no other one waiting. */
  deploymentsToUpgrade(): readonly (readonly [key: string, deployment: ObservedDeployment])[] {
    const { egresses, children } = this.#caches;
    return children.deployment.store.list().flatMap((deployment) => {
      const key = objectKey(deployment);
      const egress = egresses.store.get(key);
      return egress === undefined || isPaused(egress) ? [] : [[key, deployment] as const];
    });
  }
}
