import type { Egress } from "@egress-nat/crds";
import type { ChildKind, GatewaySettings, Manifest } from "../children/index.ts";
import { NO_CHILDREN, type ObservedChildren, type ObservedDeployment } from "../observed.ts";
import { planEgress } from "../plan.ts";

export const SETTINGS: GatewaySettings = {
  image: "gateway:1",
  imagePullPolicy: "Never",
  clusterRangesNamespace: "egress-nat",
  logLevel: "info",
};

/** What an operator of that release makes where nothing is. */
export function manifestOf(child: ChildKind, egress: Egress, image = SETTINGS.image): Manifest {
  const { steps } = planEgress({ egress, children: NO_CHILDREN, gateways: [] }, { ...SETTINGS, image });
  const step = steps.find((each) => each.child === child);
  if (step?.action !== "create") throw new Error(`there is no ${child}`);
  return step.manifest;
}

/** As an operator of that release has left it. */
export function deploymentOfRelease(image: string, egress: Egress, availableReplicas = 1): ObservedChildren {
  const counts = { replicas: 1, readyReplicas: 1, availableReplicas, updatedReplicas: 1 };
  const { apiVersion, kind, metadata, spec } = manifestOf("deployment", egress, image);
  const deployment: ObservedDeployment = {
    ...{ apiVersion, kind, spec: spec as ObservedDeployment["spec"] },
    metadata: { ...metadata, uid: "a-deployment", resourceVersion: "1" } as ObservedDeployment["metadata"],
    status: { observedGeneration: 1, ...counts, conditions: [] },
  };
  return { ...NO_CHILDREN, deployment };
}
