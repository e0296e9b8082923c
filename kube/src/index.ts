/** What long-lived programs need of the Kubernetes API. Knows no custom resource. */

export { digest, isApplied, withDigest } from "./apply/applied.ts";
export { type Desired, type ObjectReference, ResourceClient } from "./apply/resource-client.ts";
export { Controller, type ReconcileContext, type Reconciler } from "./controller/controller.ts";
export {
  done,
  type Outcome,
  requeueAfter,
  stalled,
  WorkQueue,
  type WorkReport,
} from "./controller/work-queue.ts";
export { hasCode, ifFound, KubeError, retryableError } from "./error.ts";
export { EventRecorder, type RecordedEvent, regarding } from "./events/event-recorder.ts";
export { fencedBy } from "./lead/lead.ts";
export { LeaderElector } from "./lead/leader-election.ts";
export type { Logger } from "./logger.ts";
export {
  ENDPOINT_SLICE_RESOURCE,
  type Endpoint,
  EndpointSlice,
  isOfService,
  mergeEndpoints,
} from "./objects/endpoint-slice.ts";
export {
  appliedFields,
  type FieldSet,
  type ManagedFieldsEntry,
  sharingLeaves,
} from "./objects/managed-fields.ts";
export { OwnerReferences } from "./objects/owner-references.ts";
export {
  CONFIG_MAP_RESOURCE,
  clusterResource,
  type KubeObject,
  LEASE_RESOURCE,
  NAMESPACE_RESOURCE,
  NODE_RESOURCE,
  namespacedResource,
  type ObjectMeta,
  objectKey,
  POD_RESOURCE,
  type Resource,
  resourcePath,
} from "./objects/resource.ts";
export { type Place, usableEndpoints } from "./objects/usable-endpoints.ts";
export { abortable } from "./timing/abortable.ts";
export { Backoff } from "./timing/backoff.ts";
export { type Clock, pause, systemClock } from "./timing/clock.ts";
export { Deadline } from "./timing/deadline.ts";
export { time } from "./timing/time.ts";
export type { Credentials } from "./transport/credentials.ts";
export { createTransport, type SentRequest } from "./transport/https-transport.ts";
export { loadCredentials } from "./transport/load-credentials.ts";
export type { RequestOptions, StreamOptions, Transport } from "./transport/transport.ts";
export { Cache, type CacheOptions, CacheSet } from "./watch/cache.ts";
export type { ReflectorState } from "./watch/reflector.ts";
export type { ReflectorEvent } from "./watch/reflector-event.ts";
export { type Change, Store } from "./watch/store.ts";
