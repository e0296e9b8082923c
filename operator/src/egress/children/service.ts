/** The Service before the gateways: clients send their tunnel packets to its cluster IPs. */

import { type Egress, FOU_PORT } from "@egress-nat/crds";
import type { V1ServiceSpec } from "@kubernetes/client-node";
import { CHILD_RESOURCES, gatewayLabels, head, type Manifest } from "./manifest.ts";

/** Kubernetes' own default, said aloud so that it returns when the field leaves the Egress. */
const DEFAULT_AFFINITY_SECONDS = 10_800;

export function service(egress: Egress): Manifest {
  const { sessionAffinity, sessionAffinityConfig } = egress.spec;
  const timeoutSeconds = sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_AFFINITY_SECONDS;
  const spec = {
    type: "ClusterIP",
    ipFamilyPolicy: "PreferDualStack",
    selector: { ...gatewayLabels(egress) },
    ports: [{ name: "fou", protocol: "UDP", port: FOU_PORT, targetPort: FOU_PORT }],
    sessionAffinity,
    // With None the API server refuses a configuration.
    ...(sessionAffinity === "ClientIP" && { sessionAffinityConfig: { clientIP: { timeoutSeconds } } }),
  } satisfies V1ServiceSpec;
  return { ...head(CHILD_RESOURCES.service, egress), spec };
}
