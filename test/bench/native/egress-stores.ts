import { parseStoredEgress, type ViewedStores } from "@egress-nat/client-sidecar";
import { ClusterRanges, clusterRangesData, EGRESS_LABEL } from "@egress-nat/crds";
import { EndpointSlice, Store } from "@egress-nat/kube";
import { CLUSTER_RANGES } from "./clients.ts";

/** The Egress. */
export const NAT = { namespace: "bench", name: "bench" };
const SERVICE = { name: NAT.name, uid: "service" };
export const SPEC = {
  ...{ destinations: ["0.0.0.0/0", "::/0"], excludedDestinations: [], originatingOnly: true },
  fouSourcePortAuto: false,
  gatewaySelection: "Agent",
  sessionAffinity: "None",
} as const;

export interface Gateway {
  readonly name: string;
  /** One of each family. */
  readonly addresses: readonly string[];
  readonly isTerminating?: boolean;
  /** Of one that has just been started, or started again. */
  readonly isStarting?: boolean;
}

/** A gateway that is as it should be. */
export function gatewayAt(number: number): Gateway {
  return { name: `gateway-${number}`, addresses: [`10.244.2.${number}`, `fd00:244:2::${number}`] };
}

/** What an agent has of the Kubernetes API. */
export class EgressStores implements ViewedStores {
  readonly egresses: ViewedStores["egresses"] = new Store();
  readonly endpointSlices: ViewedStores["endpointSlices"] = new Store();
  readonly clusterRanges: ViewedStores["clusterRanges"] = new Store();

  /** As soon as somebody listens: what is not told as a change is not known to all. */
  fill(gateways: readonly Gateway[]): void {
    const status = { serviceIPs: ["10.96.0.10", "fd00:96::10"], serviceUID: SERVICE.uid };
    this.egresses.put(
      parseStoredEgress({ metadata: { ...NAT, uid: "egress", generation: 1 }, spec: SPEC, status }),
    );
    this.clusterRanges.put(
      ClusterRanges.parse({
        metadata: { namespace: "egress-nat", name: "ranges", uid: "ranges" },
        data: clusterRangesData(CLUSTER_RANGES),
      }),
    );
    this.tellOf(gateways);
  }

  /** As a watch of the API does where gateways have changed: the Service has an EndpointSlice for each family. */
  tellOf(gateways: readonly Gateway[]): void {
    for (const index of [0, 1]) {
      this.endpointSlices.put(EndpointSlice.parse(JSON.parse(JSON.stringify(sliceOf(gateways, index)))));
    }
  }
}

/** @param index which of a gateway's addresses */
function sliceOf(gateways: readonly Gateway[], index: number): object {
  return {
    metadata: {
      ...{ namespace: NAT.namespace, name: `${NAT.name}-${index}`, uid: `slice-${index}` },
      labels: { [EGRESS_LABEL]: NAT.name },
      ownerReferences: [{ apiVersion: "v1", kind: "Service", ...SERVICE, controller: true }],
    },
    endpoints: gateways.map(({ name, addresses, isTerminating = false, isStarting = false }) => ({
      addresses: [addresses[index]],
      conditions: {
        ready: !isTerminating && !isStarting,
        serving: !isStarting,
        terminating: isTerminating,
      },
      nodeName: "node-2",
      targetRef: { kind: "Pod", name, uid: name },
    })),
  };
}
