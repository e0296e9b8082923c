/** What long-lived programs need of the Kubernetes API. Knows no custom resource. */

export { abortable } from "./abortable.ts";
export { digest, isApplied, withDigest } from "./applied.ts";
export { Backoff } from "./backoff.ts";
export { Cache, type CacheOptions, CacheSet } from "./cache.ts";
export { type Clock, pause, systemClock } from "./clock.ts";
export { Controller, type ReconcileContext, type Reconciler } from "./controller.ts";
export type { Credentials } from "./credentials.ts";
export { Deadline } from "./deadline.ts";
export {
  ENDPOINT_SLICE_RESOURCE,
  type Endpoint,
  EndpointSlice,
  isOfService,
  mergeEndpoints,
} from "./endpoint-slice.ts";
export { hasCode, ifFound, KubeError, retryableError } from "./error.ts";
export { EventRecorder, type RecordedEvent, regarding } from "./event-recorder.ts";
export { createTransport, type SentRequest } from "./https-transport.ts";
export { fencedBy } from "./lead.ts";
export { LeaderElector } from "./leader-election.ts";
export { loadCredentials } from "./load-credentials.ts";
export type { Logger } from "./logger.ts";
export { type FieldSet, type ManagedFieldsEntry, sharingLeaves } from "./managed-fields.ts";
export { OwnerReferences } from "./owner-references.ts";
export type { ReflectorState } from "./reflector.ts";
export type { ReflectorEvent } from "./reflector-event.ts";
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
} from "./resource.ts";
export { type Desired, type ObjectReference, ResourceClient } from "./resource-client.ts";
export { type Change, Store } from "./store.ts";
export { time } from "./time.ts";
export type { RequestOptions, StreamOptions, Transport } from "./transport.ts";
export { type Place, usableEndpoints } from "./usable-endpoints.ts";
export { done, type Outcome, requeueAfter, stalled, WorkQueue, type WorkReport } from "./work-queue.ts";
