import { FounatError, type FounatErrorCode } from "@egress-nat/founat";

const DELETE_POD = "the node's agent sets it when the pod of a gateway starts, so delete this pod";

/** What the library that failed cannot know: who sees to it in a cluster. */
const REMEDIES: { readonly [Code in FounatErrorCode]?: string } = {
  "forwarding-disabled": DELETE_POD,
  "strict-reverse-path-filter": DELETE_POD,
};

/** Why a gateway is not ready, and what to do, for people. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const remedy = error instanceof FounatError ? REMEDIES[error.code] : undefined;
  return remedy === undefined ? message : `${message}; ${remedy}`;
}
