/**
 * Conditions by which tools that know nothing of Egresses wait for one: Flux, Argo CD, `helm --wait`, `kubectl wait`.
 * https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
 */

import type { Condition } from "@egress-nat/crds";

/** What a condition says, and why. */
export type Finding = Pick<Condition, "status" | "reason" | "message">;

/** Something that needs attention. */
export interface Problem {
  /** In one CamelCase word. */
  readonly reason: string;
  readonly message: string;
  /** It is tried again and again, and may pass by itself. */
  readonly isRetried?: boolean;
}

/** Gateways may serve, and the wanted state is reached, but a person should look at it. */
const GOES_ON: ReadonlySet<string> = new Set(["ClusterRangesIncomplete", "GatewayNotReady"]);

/**
 * Ready is always there. The other two tell of what is not as usual, and are there only while they hold: Reconciling that
 * something is under way, Stalled that it does not go on by itself.
 */
export function standardConditions(
  available: Finding,
  progressing: Finding,
  problems: readonly Problem[],
): Readonly<Record<string, Finding>> {
  const obstacles = problems.filter(({ reason }) => !GOES_ON.has(reason));
  const obstacle = obstacles.find(({ isRetried }) => !isRetried) ?? obstacles[0];
  if (obstacle !== undefined) {
    const { reason, message, isRetried } = obstacle;
    return {
      Ready: { status: "False", reason, message },
      ...(isRetried ? { Reconciling: progressing } : { Stalled: { status: "True", reason, message } }),
    };
  }
  // No gateways are what was asked for.
  const isAsWanted = available.status === "True" || available.reason === "ScaledToZero";
  return {
    Ready: { ...available, status: isAsWanted ? "True" : "False" },
    ...(progressing.status === "True" && { Reconciling: progressing }),
  };
}
