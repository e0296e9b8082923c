/**
 * Representations of objects that a collection can be asked for, as values of the header Accept.
 *
 * @see https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches
 */
export const METADATA_ONLY = {
  list: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
  watch: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
} as const;
