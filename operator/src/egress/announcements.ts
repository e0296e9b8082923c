/** What people are told by events about an Egress: what changed for them, once. */

import type { Condition, EgressStatus } from "@egress-nat/crds";
import type { RecordedEvent } from "@egress-nat/kube";

export type Announcement = Omit<RecordedEvent, "regarding">;

/**
 * @param created kinds of the children that were just made
 * @param replicas of the Deployment, before and after
 */
export function announcements(
  before: EgressStatus | undefined,
  after: EgressStatus,
  created: readonly string[],
  [from, to]: readonly (number | undefined)[] = [],
): readonly Announcement[] {
  return [
    ...(created.length > 0 ? [normal("Created", "Create", `created ${created.join(", ")}`)] : []),
    ...(from !== undefined && to !== undefined && from !== to
      ? [normal("Scaled", "Scale", `from ${from} to ${to} gateways`)]
      : []),
    ...degradation(find(before, "Degraded"), find(after, "Degraded")),
    ...lostGateways(before?.gateways, after.gateways),
    ...availability(find(before, "Available"), find(after, "Available")),
  ];
}

function degradation(before: Condition | undefined, after: Condition | undefined): readonly Announcement[] {
  if (after?.status !== "True" || (before?.status === "True" && before.message === after.message)) return [];
  return [warning(after.reason, after.message)];
}

function availability(before: Condition | undefined, after: Condition | undefined): readonly Announcement[] {
  if (after === undefined || before?.status === after.status) return [];
  if (after.status === "True") return [normal("Available", "Reconcile", after.message)];
  if (before === undefined) return [];
  return [warning("Unavailable", after.message)];
}

function lostGateways(
  before: EgressStatus["gateways"] = [],
  after: EgressStatus["gateways"] = [],
): readonly Announcement[] {
  const serving = before.filter(({ state }) => state === "Ready" || state === "Suspect");
  const served = new Set(serving.map(({ name }) => name));
  return after
    .filter(({ name, state }) => state === "Down" && served.has(name))
    .map(({ name, node, reason, reportedBy }) => {
      const lost = `gateway ${name} on node ${node} takes no new flows any more`;
      const why = reportedBy === undefined ? "" : `: node ${reportedBy} gets ${reason}`;
      return warning("GatewayLost", `${lost}${why}`);
    });
}

function normal(reason: string, action: string, message: string): Announcement {
  return { type: "Normal", reason, action, message };
}

function warning(reason: string, message: string): Announcement {
  return { type: "Warning", reason, action: "Reconcile", message };
}

function find(status: EgressStatus | undefined, type: string): Condition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}
