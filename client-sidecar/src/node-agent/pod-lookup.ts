/** The one question that the agent asks about pods, where the container runtime says too little of one. */

import { hasCode, POD_RESOURCE, ResourceClient, type Transport } from "@egress-nat/kube";
import { z } from "zod";
import type { LookUpPod } from "../client/adder.ts";
import { CniError, CniErrorCode } from "../cni/error.ts";

const Pod = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    annotations: z.record(z.string(), z.string()).default({}),
  }),
});

/** It throws KubeError NotFound where the pod is gone, and CniError where the agent may not ask, as is the chart's default. */
export function podLookup(transport: Transport): LookUpPod {
  const client = new ResourceClient(transport, POD_RESOURCE, (raw) => Pod.parse(raw));
  return async ({ namespace, name }, signal) => {
    try {
      const { uid, annotations } = (await client.get({ namespace, name }, { signal })).metadata;
      return { uid, annotations };
    } catch (error) {
      if (!hasCode(error, "Forbidden")) throw error;
      throw new CniError(
        CniErrorCode.tryAgainLater,
        `the container runtime does not pass the annotations or the UID of pod ${namespace}/${name}, and the node agent may not read pods`,
        "containerd 1.6 and CRI-O pass them; for another runtime set nodeAgent.runtimePassesAnnotations to false in the chart's values",
        { cause: error },
      );
    }
  };
}
