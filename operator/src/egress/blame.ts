import type { KubeError } from "@egress-nat/kube";

const INTERNAL_ERROR = 500;

/**
 * What the API server says where it could not ask a webhook. All else that it answers with 500, as while etcd elects a
 * leader, is its own trouble, which passes.
 *
 * @see https://github.com/kubernetes/kubernetes/blob/v1.35.0/staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go
 */
const WEBHOOK_FAILED = "failed calling webhook";

/**
 * Whose fault it is that a write was not carried out.
 *
 * @returns "object": an answer that is no, or a failure of what the API server asks about this object, which nothing but a
 *   new try tells the end of. "server": its own trouble, which should pass by itself. undefined: it is nobody's, as where no
 *   answer came or the object is another one meanwhile
 */
export function blameOf(error: KubeError): "object" | "server" | undefined {
  const { status, message, retryable } = error;
  if (status === undefined) return undefined;
  if (status === INTERNAL_ERROR) return message.includes(WEBHOOK_FAILED) ? "object" : "server";
  return retryable ? undefined : "object";
}
