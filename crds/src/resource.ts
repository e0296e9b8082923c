/** Where the project's resources live in the Kubernetes API. */

import { API_GROUP, API_VERSION } from "./names.ts";

const OURS = { group: API_GROUP, version: API_VERSION, namespaced: true } as const;

export const EGRESS_RESOURCE = { ...OURS, plural: "egresses", kind: "Egress" } as const;

export const SLICE_RESOURCE = { ...OURS, plural: "egressclientslices", kind: "EgressClientSlice" } as const;
