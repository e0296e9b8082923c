import type { Endpoint } from "./endpoint-slice.ts";

/** Where somebody is who connects to a Service. */
export interface Place {
  readonly nodeName: string;
  /** Undefined where the node has none. */
  readonly zone: string | undefined;
}

type Conditions = Pick<Endpoint, "ready" | "serving" | "terminating" | "hints">;

/**
 * The endpoints that a Service proxy gives new connections to: those that are ready; where none is, those that terminate
 * and still serve. Of the ready ones those that are meant for this node, or else for its zone, where all say whom they
 * are meant for.
 *
 * @param endpoints of one address family
 * @see https://kubernetes.io/docs/reference/networking/virtual-ips/#traffic-to-terminating-endpoints and
 *   #topology-hints; kube-proxy does it in pkg/proxy/topology.go (CategorizeEndpoints)
 */
export function usableEndpoints<E extends Conditions>(endpoints: readonly E[], place: Place): readonly E[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  if (ready.length === 0) return endpoints.filter(({ serving, terminating }) => serving && terminating);
  return meantFor(ready, "forNodes", place.nodeName) ?? meantFor(ready, "forZones", place.zone) ?? ready;
}

function meantFor<E extends Conditions>(
  ready: readonly E[],
  kind: "forNodes" | "forZones",
  name: string | undefined,
): readonly E[] | undefined {
  if (name === undefined || !ready.every(({ hints }) => hints?.[kind].length)) return undefined;
  const meant = ready.filter(({ hints }) => hints?.[kind].includes(name));
  return meant.length === 0 ? undefined : meant;
}
