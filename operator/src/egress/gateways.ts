/** The gateways of an Egress as its status shows them. */

import { type GatewayReport, GatewayStatus, UPLINK_REASON } from "@egress-nat/crds";
import type { Endpoint } from "@egress-nat/kube";

/** What the agent of a node says of a gateway that does not answer it. */
export interface AgentReport extends GatewayReport {
  readonly node: string;
}

/** What is known of the gateways of one Egress. */
export interface GatewaysSeen {
  readonly gateways: readonly Endpoint[];
  /** Why those that do not serve say that they do not, by name. */
  readonly gatewayReasons: ReadonlyMap<string, string>;
  readonly gatewayReports: readonly AgentReport[];
  /** Names of those of their nodes that nobody hears of. */
  readonly silentNodes: ReadonlySet<string>;
}

const MISSED: Readonly<Record<GatewayReport["state"], string>> = {
  Suspect: "no answer to heartbeats",
  Down: "no answer through the tunnel",
};

const STATES = GatewayStatus.shape.state.options;

/**
 * @param before what the status shows so far: times are kept where states are, and so is who reports them
 * @param now RFC 3339
 * @returns one entry for each pod, by name
 */
export function gatewayStatuses(
  { gateways, gatewayReasons, gatewayReports, silentNodes }: GatewaysSeen,
  before: readonly GatewayStatus[],
  now: string,
): readonly GatewayStatus[] {
  const reports = Map.groupBy(gatewayReports, ({ gateway }) => gateway);
  const former = new Map(before.map((gateway) => [gateway.name, gateway]));
  return gateways
    .map((endpoint) => {
      const { name, nodeName, addresses } = endpoint;
      const last = former.get(name);
      const report = endpoint.ready ? decisive(reports.get(name) ?? [], last?.reportedBy) : undefined;
      const isCutOff = nodeName !== undefined && silentNodes.has(nodeName);
      const state = report?.state ?? stateOf(endpoint, isCutOff ? undefined : last?.state);
      const reason = report ? MISSED[report.state] : state === "Down" ? gatewayReasons.get(name) : undefined;
      return {
        name,
        ...(nodeName !== undefined && { node: nodeName }),
        addresses: addresses.toSorted(),
        state,
        since: (last?.state === state ? last.since : report?.since) ?? now,
        ...(reason !== undefined && { reason }),
        ...(report && { reportedBy: report.node }),
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** @returns how many are in which state: `2 Ready, 1 Suspect, 1 Down: uplink` */
export function gatewayStates(gateways: readonly GatewayStatus[]): string {
  const inState = Map.groupBy(gateways, nameOfState);
  return STATES.flatMap((state) => [state, withoutUplink(state)])
    .map((name) => [inState.get(name)?.length ?? 0, name] as const)
    .filter(([count]) => count > 0)
    .map(([count, name]) => `${count} ${name}`)
    .join(", ");
}

function nameOfState({ state, reason }: GatewayStatus): string {
  return reason?.startsWith(UPLINK_REASON) ? withoutUplink(state) : state;
}

function withoutUplink(state: GatewayStatus["state"]): string {
  return `${state}: uplink`;
}

/** The worst, of those that say the same the one that is shown already, else the earliest. */
function decisive(reports: readonly AgentReport[], shown: string | undefined): AgentReport | undefined {
  const down = reports.filter(({ state }) => state === "Down");
  const worst = down.length > 0 ? down : reports;
  return worst.find(({ node }) => node === shown) ?? worst.toSorted(byTime)[0];
}

function byTime(a: AgentReport, b: AgentReport): number {
  return Date.parse(a.since) - Date.parse(b.since) || (a.node < b.node ? -1 : 1);
}

/**
 * A pod on a node that has died is about to end until the node is deleted, and serves nothing. It was down before, or the
 * node is silent. Of one that is told to end, that it ends may be the first that is seen, and while it drains it need
 * not be ready.
 *
 * @param last undefined where it says nothing
 */
function stateOf(
  { ready, serving, terminating }: Endpoint,
  last: GatewayStatus["state"] | undefined,
): GatewayStatus["state"] {
  if (ready) return "Ready";
  const hasServed = last !== undefined && last !== "Down";
  return terminating && (serving || hasServed) ? "Draining" : "Down";
}
