/** The clients of one Egress on one node. */

import { z } from "zod";
import { Address } from "./address.ts";
import { ObjectMeta } from "./object-meta.ts";
import { withCel } from "./rule.ts";

/** More pods than any kubelet runs; bounds the cost of CEL over the list. */
const MAX_CLIENTS = 1000;

/** One per family, and room for a pod with several networks. */
export const MAX_CLIENT_ADDRESSES = 8;

const MAX_NAME_LENGTH = 253;

/** With the UID of its slice it names the client to the gateway's packet filter. */
export const CLIENT_UID = /^[\w.:-]{1,83}$/;

/** One client: a pod and the addresses that are its identity in the tunnel. */
export const SliceClient = z.object({
  namespace: z.string().max(MAX_NAME_LENGTH).describe("Namespace of the pod."),
  name: z.string().max(MAX_NAME_LENGTH).describe("Name of the pod."),
  uid: z.string().regex(CLIENT_UID).describe("UID of the pod."),
  addresses: z
    .array(Address)
    .min(1)
    .max(MAX_CLIENT_ADDRESSES)
    .meta({ "x-kubernetes-list-type": "atomic" })
    .describe("Addresses of the pod. A gateway serves packets from these addresses only."),
  addedAt: z.iso
    .datetime({ offset: true })
    .describe(
      "When the client was added (RFC 3339, with fractions of a second). If two slices name one address, the " +
        "later entry counts.",
    ),
});
export type SliceClient = z.infer<typeof SliceClient>;

/** One gateway that does not answer the node agent that writes the slice. */
export const GatewayReport = z.object({
  gateway: z.string().max(MAX_NAME_LENGTH).describe("Name of the gateway's pod."),
  state: z
    .enum(["Suspect", "Down"])
    .describe(
      "Suspect: it does not answer heartbeats. Down: nothing comes back through the tunnel to it either.",
    ),
  since: z.iso.datetime({ offset: true }).describe("When the agent first saw that (RFC 3339)."),
});
export type GatewayReport = z.infer<typeof GatewayReport>;

/** An EgressClientSlice as the API server returns it. */
export const EgressClientSlice = withCel(
  z
    .object({
      apiVersion: z.string().exactOptional(),
      kind: z.string().exactOptional(),
      metadata: ObjectMeta,
      nodeName: withCel(z.string().min(1).max(MAX_NAME_LENGTH), {
        rule: "self == oldSelf",
        message: "nodeName cannot be changed: create another EgressClientSlice",
      }).describe("The node that the clients run on. Its node agent writes this object."),
      clients: z
        .array(SliceClient)
        .max(MAX_CLIENTS)
        .meta({ "x-kubernetes-list-type": "atomic" })
        .describe("The clients, one entry per pod."),
      clientCount: z
        .int32()
        .min(0)
        .describe("Number of clients, shown by `kubectl get`. Any other number is refused.")
        .exactOptional(),
      suspects: z
        .array(GatewayReport)
        .meta({ "x-kubernetes-list-type": "atomic" })
        .describe(
          "Gateways that do not answer the node agent. The operator shows them in the status of the Egress. If that " +
            "shows a gateway already, further agents do not report it.",
        )
        .exactOptional(),
    })
    .describe(
      "The clients of one Egress on one node, as an EndpointSlice lists the endpoints of a Service. Node agents " +
        "write these objects, and gateways read them. People do not edit them.",
    ),
  {
    rule: "!has(self.clientCount) || self.clientCount == size(self.clients)",
    message: "clientCount is not the number of clients: correct it, or leave it out",
  },
);
export type EgressClientSlice = z.infer<typeof EgressClientSlice>;
