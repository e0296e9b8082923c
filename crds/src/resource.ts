/** Where the project's resources live in the Kubernetes API. */

import { API_GROUP, API_VERSION } from "./names.ts";

/** One kind of object of the Kubernetes API. */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

export const EGRESS_RESOURCE = {
  group: API_GROUP,
  version: API_VERSION,
  plural: "egresses",
  kind: "Egress",
  namespaced: true,
} as const satisfies Resource;

export const SLICE_RESOURCE = {
  group: API_GROUP,
  version: API_VERSION,
  plural: "egressclientslices",
  kind: "EgressClientSlice",
  namespaced: true,
} as const satisfies Resource;
