/** What the client side knows of Egresses, their gateways and the cluster. */

import { EgressSpec, EgressStatus, type InvalidEgress, ObjectHead, orInvalid } from "@egress-nat/crds";
import type { Endpoint, Place } from "@egress-nat/kube";
import { z } from "zod";
import { type EgressReference, POLICY_FIELDS } from "../records/schema.ts";
import type { Pulse } from "./pulse.ts";

/** The part of an Egress that the agent keeps: it does not need the pod template, which may be long. */
export const EgressFacts = z.object({
  metadata: ObjectHead,
  spec: EgressSpec.pick({
    ...POLICY_FIELDS,
    allowedNamespaces: true,
    clientStartup: true,
    uplinkProbe: true,
  }),
  status: EgressStatus.pick({
    serviceIPs: true,
    serviceUID: true,
    allowedNamespaces: true,
    observedGeneration: true,
    gateways: true,
    clients: true,
  }).optional(),
});
export type EgressFacts = z.infer<typeof EgressFacts>;

/** An Egress as the API has it, whether this agent understands it or not. */
export type StoredEgress = EgressFacts | InvalidEgress;

export const parseStoredEgress: (raw: unknown) => StoredEgress = orInvalid(EgressFacts);

/** One gateway as the API has it. */
export type Gateway = Omit<Endpoint, "nodeName">;

export interface EgressView {
  egress(reference: EgressReference): StoredEgress | undefined;
  gateways(reference: EgressReference): readonly Gateway[];
  /** Those that it has named until a moment ago. */
  vanishedGateways(reference: EgressReference): readonly Gateway[];
  /** What has been heard of an address of a gateway. */
  pulse(address: string): Pulse;
  /** Whether {@link gateways} are all: where no EndpointSlice tells of them, some may serve all the same. */
  knowsGateways(reference: EgressReference): boolean;
  hasEgressIn(namespace: string): boolean;
  /** Of this node. */
  readonly place: Place;
  /** CIDRs of pods, Services and nodes. */
  readonly clusterRanges: readonly string[];
}
