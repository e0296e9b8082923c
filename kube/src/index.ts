/** What long-lived programs need of the Kubernetes API. Knows no custom resource. */

export { abortable } from "./abortable.ts";
export { type AppliedOptions, digest, isApplied, withDigest } from "./applied.ts";
export { Backoff, type BackoffOptions } from "./backoff.ts";
export { type Clock, pause, systemClock } from "./clock.ts";
export type { Authentication, Credentials, CredentialsOptions, TlsOptions } from "./credentials.ts";
export {
  ENDPOINT_SLICE_RESOURCE,
  type Endpoint,
  EndpointSlice,
  isOfService,
  mergeEndpoints,
} from "./endpoint-slice.ts";
export { hasCode, KubeError } from "./error.ts";
export {
  EventRecorder,
  type EventRecorderOptions,
  type RecordedEvent,
  type Regarding,
} from "./event-recorder.ts";
export { type InClusterOptions, inClusterCredentials } from "./in-cluster-credentials.ts";
export { fencedBy } from "./lead.ts";
export { type LeaderCallbacks, LeaderElector, type LeaderElectorOptions } from "./leader-election.ts";
export type { ListResult } from "./list.ts";
export { loadCredentials } from "./load-credentials.ts";
export type { Logger } from "./logger.ts";
export { appliedFields, type FieldSet, type ManagedFieldsEntry, sharingLeaves } from "./managed-fields.ts";
export { microTime } from "./micro-time.ts";
export { OwnerReferences } from "./owner-references.ts";
export { Reflector, type ReflectorEvent, type ReflectorOptions, type ReflectorState } from "./reflector.ts";
export {
  apiVersion,
  CONFIG_MAP_RESOURCE,
  type KubeObject,
  LEASE_RESOURCE,
  NAMESPACE_RESOURCE,
  NODE_RESOURCE,
  type ObjectMeta,
  type OwnerReference,
  objectKey,
  type Resource,
  type ResourceLocation,
  resourcePath,
} from "./resource.ts";
export {
  type ApplyOptions,
  type CallOptions,
  type DeleteOptions,
  type Desired,
  type ListOptions,
  type ObjectReference,
  type PatchOptions,
  ResourceClient,
} from "./resource-client.ts";
export { type Change, type ChangeListener, Store } from "./store.ts";
export {
  createTransport,
  type Query,
  type RequestOptions,
  type SentRequest,
  type StreamOptions,
  type Transport,
  type TransportOptions,
} from "./transport.ts";
export {
  done,
  type Outcome,
  requeueAfter,
  type Worker,
  WorkQueue,
  type WorkQueueOptions,
  type WorkReport,
} from "./work-queue.ts";
