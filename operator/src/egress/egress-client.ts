/** What the operator says of an Egress: its status, and events. */

import { EGRESS_RESOURCE, Egress, type EgressStatus, orInvalid } from "@egress-nat/crds";
import { apiVersion, type Cache, type EventRecorder, ResourceClient, type Transport } from "@egress-nat/kube";
import type { Announcement } from "./announcements.ts";
import { FIELD_MANAGER } from "./field-manager.ts";
import type { StoredEgress } from "./status.ts";

export class EgressClient {
  readonly #client: ResourceClient<StoredEgress>;
  readonly #cache: Cache<StoredEgress>;
  readonly #events: Pick<EventRecorder, "record">;

  constructor(transport: Transport, cache: Cache<StoredEgress>, events: Pick<EventRecorder, "record">) {
    this.#client = new ResourceClient(transport, EGRESS_RESOURCE, orInvalid(Egress));
    this.#cache = cache;
    this.#events = events;
  }

  /**
   * Writes the status of this version of the Egress alone: who has seen less than another must not have the last word.
   *
   * @throws KubeError Conflict where there is another version meanwhile
   */
  async writeStatus({ metadata }: StoredEgress, status: EgressStatus, signal: AbortSignal): Promise<void> {
    const { name, namespace, resourceVersion } = metadata;
    const written = await this.#client.applyStatus(
      { metadata: { name, namespace, resourceVersion }, status },
      { fieldManager: FIELD_MANAGER, force: true, signal },
    );
    this.#cache.learn(written, resourceVersion);
  }

  announce({ metadata: { name, namespace, uid } }: StoredEgress, announcement: Announcement): void {
    const { kind } = EGRESS_RESOURCE;
    const regarding = { apiVersion: apiVersion(EGRESS_RESOURCE), kind, name, namespace, uid };
    this.#events.record({ regarding, ...announcement });
  }
}
