import { z } from "zod";

const OwnerReference = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
  blockOwnerDeletion: z.boolean().exactOptional(),
});

/** Metadata of a namespaced custom resource as the API server returns it. */
export const ObjectMeta = z.object({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  generation: z.int(),
  resourceVersion: z.string().exactOptional(),
  creationTimestamp: z.string().exactOptional(),
  deletionTimestamp: z.string().exactOptional(),
  labels: z.record(z.string(), z.string()).exactOptional(),
  annotations: z.record(z.string(), z.string()).exactOptional(),
  ownerReferences: z.array(OwnerReference).exactOptional(),
});
export type ObjectMeta = z.infer<typeof ObjectMeta>;

/** What a program that watches objects keeps of their metadata. */
export const ObjectHead = ObjectMeta.pick({
  name: true,
  namespace: true,
  uid: true,
  generation: true,
  resourceVersion: true,
});
