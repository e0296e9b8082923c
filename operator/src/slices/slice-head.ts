import { EgressClientSlice, GatewayReport } from "@egress-nat/crds";
import { z } from "zod";

/** All that the operator keeps of a slice: of its clients only how many they are, and what its agent reports. */
export const SliceHead = z.object({
  metadata: EgressClientSlice.shape.metadata.pick({
    name: true,
    namespace: true,
    uid: true,
    resourceVersion: true,
    labels: true,
    ownerReferences: true,
  }),
  nodeName: z.string(),
  clients: z.array(z.unknown()).transform(({ length }) => length),
  suspects: z.array(GatewayReport).default([]),
});
export type SliceHead = z.infer<typeof SliceHead>;

/** Names of the indexes of slices and EndpointSlices. */
export const BY_EGRESS = "egress";
export const BY_NODE = "node";
