import { EGRESS_LABEL, sliceName } from "@egress-nat/crds";

/** The Egress of the benchmark. */
export const EGRESS = { namespace: "internet", name: "egress" };

/**
 * A slice as the apiserver writes it.
 *
 * @param node number of its node, below 256
 * @param clients how many clients it has, below 256
 */
export function sliceObject(node: number, clients: number, generation = 1) {
  const nodeName = `node-${node}`;
  return {
    apiVersion: "coil.cybozu.com/v2",
    kind: "EgressClientSlice",
    metadata: {
      name: sliceName(EGRESS.name, nodeName),
      namespace: EGRESS.namespace,
      uid: uid(node, 0),
      generation,
      resourceVersion: String(1000 + generation),
      creationTimestamp: "2026-01-01T00:00:00Z",
      labels: { [EGRESS_LABEL]: EGRESS.name },
    },
    nodeName,
    clients: Array.from({ length: clients }, (_, index) => ({
      namespace: "default",
      name: `web-${node}-${index}`,
      uid: uid(node, index + 1),
      addresses: [address(node, index)],
      addedAt: "2026-01-01T00:00:00.000000Z",
    })),
  };
}

export function address(node: number, client: number): string {
  return `10.${100 + Math.floor(node / 256)}.${node % 256}.${client}`;
}

function uid(node: number, index: number): string {
  return `00000000-0000-4000-8000-${String(node * 1000 + index).padStart(12, "0")}`;
}
