/** Where the networks of the cluster are to be found: what the operator keeps of these objects. */

import { Cidr, isApiAddress } from "@egress-nat/crds";
import { clusterResource, type KubeObject } from "@egress-nat/kube";
import { z } from "zod";

const Metadata = z.object({ name: z.string(), uid: z.string(), resourceVersion: z.string() });

/** Networks of Services (KEP-1880): since Kubernetes 1.33 every cluster says which they are. */
export const SERVICE_CIDR_RESOURCE = clusterResource("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR");

export const ServiceCidr = z.object({
  metadata: Metadata,
  spec: z.object({ cidrs: z.array(Cidr) }),
});
export type ServiceCidr = z.infer<typeof ServiceCidr> & KubeObject;

/** Node addresses may be names, and those of a dual-stack node are not checked by the API server. */
const addresses = z
  .array(z.object({ address: z.string() }))
  .default([])
  .transform((list) => list.flatMap(({ address }) => (isApiAddress(address) ? [address] : [])));

/** A node: its name tells whether it is there, the rest where its pods and itself are, and whether it is silent. */
export const NodeHead = z
  .object({
    metadata: Metadata,
    // Empty where a CNI plugin manages the addresses of pods by itself.
    spec: z.object({ podCIDRs: z.array(Cidr).default([]) }).default({ podCIDRs: [] }),
    status: z
      .object({
        addresses,
        conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
      })
      .default({ addresses: [], conditions: [] }),
  })
  .transform(({ metadata, spec, status: { addresses, conditions } }) => ({
    ...{ metadata, spec, status: { addresses } },
    /** Its kubelet has not been heard of for a while: https://kubernetes.io/docs/reference/node/node-status/#condition */
    isSilent: conditions.some(({ type, status }) => type === "Ready" && status === "Unknown"),
  }));
export type NodeHead = z.infer<typeof NodeHead> & KubeObject;

/** The addresses at which a Service is reached from outside. */
export const ServiceAddresses = z
  .object({
    metadata: Metadata.extend({ namespace: z.string() }),
    spec: z.object({ externalIPs: z.array(z.string()).default([]) }),
    status: z
      .object({
        loadBalancer: z
          .object({ ingress: z.array(z.object({ ip: z.string().optional() })).default([]) })
          .default({ ingress: [] }),
      })
      .default({ loadBalancer: { ingress: [] } }),
  })
  .transform(({ metadata, spec, status }) => ({
    metadata,
    addresses: [...spec.externalIPs, ...status.loadBalancer.ingress.flatMap(({ ip }) => ip ?? [])].filter(
      isApiAddress,
    ),
  }));
export type ServiceAddresses = z.infer<typeof ServiceAddresses> & KubeObject;
