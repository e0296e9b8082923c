/** What the agent keeps in files: parsed when it is read back, as whatever comes from outside the process. */

import { EgressSpec } from "@egress-nat/crds";
import { z } from "zod";

const Texts = z.array(z.string()).readonly();

const reference = { namespace: z.string(), name: z.string() };

const EgressReference = z.object(reference).readonly();
export type EgressReference = z.infer<typeof EgressReference>;

/**
 * What a client's network namespace is made of, of an Egress. Whoever adds a field adds it to `clientEgress`, and here with
 * a default, because records of the version before lack it.
 */
const policy = {
  destinations: Texts,
  excludedDestinations: Texts.default([]),
  originatingOnly: z.boolean(),
  fouSourcePortAuto: z.boolean(),
  gatewaySelection: EgressSpec.shape.gatewaySelection,
  sessionAffinity: EgressSpec.shape.sessionAffinity,
};

/** The names of its fields, in the form in which zod picks them. */
export const POLICY_FIELDS = Object.fromEntries(Object.keys(policy).map((name) => [name, true])) as Readonly<
  Record<keyof typeof policy, true>
>;

/** What is kept of an Egress with each of its clients, for the time when the Egress is gone, or not understood: what to guard. */
export const RecordedEgress = z.object({ ...reference, ...policy }).readonly();
export type RecordedEgress = z.infer<typeof RecordedEgress>;

/** One client on this node; a pod that asks for an Egress is one by each of the networks that the plugin is chained in. */
export const ClientRecord = z
  .object({
    /** `name` of the network configuration; records of before the field was there have none. */
    network: z.string().exactOptional(),
    containerId: z.string(),
    netns: z.string(),
    ifname: z.string(),
    pod: z.object({ ...reference, uid: z.string() }).readonly(),
    /** Canonical. */
    addresses: Texts,
    /** RFC 3339. */
    addedAt: z.string(),
    /** In the annotation's order. */
    egresses: z.array(RecordedEgress).readonly(),
  })
  .readonly();
export type ClientRecord = z.infer<typeof ClientRecord>;

/** Sorts clients, the oldest first. */
export function byAge(a: ClientRecord, b: ClientRecord): number {
  return Date.parse(a.addedAt) - Date.parse(b.addedAt);
}

/** One interface of one container in one network. */
export type Attachment = Pick<ClientRecord, "network" | "containerId" | "ifname">;

/** An address that gateways of these Egresses may trust: given to no other pod until they have let go of it. */
export const TrustedAddress = z
  .object({
    address: z.string(),
    /** Id of the client's record; absent where only a slice tells that there was a client. */
    record: z.string().exactOptional(),
    /** Instead of it in files of an earlier version, whose records were named for their containers alone. */
    containerId: z.string().exactOptional(),
    egresses: z.array(EgressReference).readonly(),
  })
  .transform(({ containerId, record = containerId, ...rest }) => ({
    ...rest,
    ...(record !== undefined && { record }),
  }));
export type TrustedAddress = Readonly<z.infer<typeof TrustedAddress>>;
