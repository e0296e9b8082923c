/** Where the project's resources live in the Kubernetes API. */

import { API_GROUP, API_VERSION } from "./names.ts";

export const EGRESS_RESOURCE = {
  group: API_GROUP,
  version: API_VERSION,
  plural: "egresses",
  kind: "Egress",
  namespaced: true,
} as const;

export const SLICE_RESOURCE = {
  group: API_GROUP,
  version: API_VERSION,
  plural: "egressclientslices",
  kind: "EgressClientSlice",
  namespaced: true,
} as const;
