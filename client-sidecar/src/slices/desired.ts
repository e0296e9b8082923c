/** The EgressClientSlice of one Egress and this node, computed from the node's client records. */

import {
  CLIENT_UID,
  EGRESS_LABEL,
  EGRESS_RESOURCE,
  type GatewayReport,
  labelValue,
  NODE_LABEL,
  type SliceClient,
  sliceName,
} from "@egress-nat/crds";
import type { StoredEgress } from "../gateways/view.ts";
import { byAge, type ClientRecord } from "../records/schema.ts";

/**
 * The entries of a slice: one per pod, in an order that does not depend on when they were computed. A pod has the
 * addresses of all its networks; of two sandboxes of one pod the later holds.
 */
export function sliceClients(records: Iterable<ClientRecord>): SliceClient[] {
  const clients = new Map<string, SliceClient & { readonly containerId: string }>();
  for (const { containerId, pod, addresses, addedAt } of [...records].sort(byAge)) {
    const before = clients.get(pod.uid);
    const others = before?.containerId === containerId ? before.addresses : [];
    clients.set(pod.uid, { ...pod, addresses: [...others, ...addresses], addedAt, containerId });
  }
  return (
    [...clients.values()]
      // The API would refuse the slice with all others in it.
      .filter(({ uid }) => CLIENT_UID.test(uid))
      .map(({ containerId: _, ...client }) => client)
      .sort((a, b) => (a.uid < b.uid ? -1 : 1))
  );
}

/** @param egress its owner: the slice is gone when the Egress is */
export function desiredSlice(
  egress: StoredEgress,
  nodeName: string,
  clients: SliceClient[],
  suspects: readonly GatewayReport[],
) {
  const { namespace, name, uid } = egress.metadata;
  return {
    metadata: {
      namespace,
      name: sliceName(name, nodeName),
      labels: { [EGRESS_LABEL]: labelValue(name), [NODE_LABEL]: labelValue(nodeName) },
      ownerReferences: [
        { apiVersion: EGRESS_RESOURCE.apiVersion, kind: EGRESS_RESOURCE.kind, name, uid, controller: true },
      ],
    },
    nodeName,
    clients,
    clientCount: clients.length,
    ...(suspects.length > 0 && { suspects: [...suspects] }),
  };
}
