/** What the operator says of an Egress: its status, and events. */

import { EGRESS_RESOURCE, Egress, OPERATOR, orInvalid } from "@egress-nat/crds";
import { type Cache, type EventRecorder, ResourceClient, regarding, type Transport } from "@egress-nat/kube";
import type { StoredEgress } from "./status.ts";
import type { EgressWorld } from "./world.ts";

export function egressClient(
  transport: Transport,
  cache: Cache<StoredEgress>,
  events: Pick<EventRecorder, "record">,
): Pick<EgressWorld, "writeStatus" | "announce"> {
  const client = new ResourceClient(transport, EGRESS_RESOURCE, orInvalid(Egress));
  return {
    // Of this version of the Egress alone: who has seen less than another must not have the last word.
    async writeStatus({ metadata: { name, namespace, resourceVersion } }, status, signal) {
      const written = await client.apply(
        { metadata: { name, namespace, resourceVersion }, status },
        { fieldManager: OPERATOR, subresource: "status", force: true, signal },
      );
      cache.learn(written, resourceVersion);
    },
    announce(egress, announcement) {
      events.record({ regarding: regarding(EGRESS_RESOURCE, egress), ...announcement });
    },
  };
}
