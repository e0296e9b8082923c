/** Where the project's resources live in the Kubernetes API. */

import { API_GROUP, API_VERSION } from "./names.ts";

const OURS = { apiVersion: `${API_GROUP}/${API_VERSION}`, namespaced: true } as const;

export const EGRESS_RESOURCE = { ...OURS, plural: "egresses", kind: "Egress" } as const;

export const SLICE_RESOURCE = { ...OURS, plural: "egressclientslices", kind: "EgressClientSlice" } as const;
