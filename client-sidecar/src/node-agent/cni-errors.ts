/** What goes wrong, as the container runtime hears of it. */

import { FounatError } from "@egress-nat/founat";
import { KubeError } from "@egress-nat/kube";
import { ClientError } from "../client/error.ts";
import type { PodReference } from "../client/pod.ts";
import { CniError, CniErrorCode, cniErrorOf } from "../cni/error.ts";

/**
 * @param pod that the failure keeps from starting
 * @returns what was given, where nobody has foreseen it
 */
export function asCniError(error: unknown, pod?: PodReference): unknown {
  if (error instanceof ClientError) return cniErrorOf(error);
  if (pod === undefined) return error;
  const name = `${pod.namespace}/${pod.name}`;
  if (error instanceof KubeError) {
    return new CniError(
      CniErrorCode.tryAgainLater,
      `cannot make pod ${name} a client: ${error.message}`,
      "the Kubernetes API must answer, and the node agent must have its ClusterRole",
      { cause: error },
    );
  }
  if (error instanceof FounatError) {
    return new CniError(
      error.retryable ? CniErrorCode.tryAgainLater : CniErrorCode.invalidPod,
      `cannot program the network namespace of pod ${name}: ${error.message}`,
      undefined,
      { cause: error },
    );
  }
  return error;
}
