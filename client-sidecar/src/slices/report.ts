/** Whether this node reports a gateway that does not answer it: in a large cluster a few nodes speak for all. */

import type { GatewayReport, GatewayStatus } from "@egress-nat/crds";
import type { Pulse } from "../gateways/pulse.ts";

/** How much longer a node waits at most for each other node that may report the same. */
const WAIT_PER_NODE_MS = 250;
const MAX_WAIT_MS = 60_000;

/** How long it must be better before a report says so: one that comes and goes would be written again and again. */
const CALM_MS = 5_000;

const REPORTED: Readonly<Record<Pulse, GatewayReport["state"] | undefined>> = {
  unknown: undefined,
  alive: undefined,
  // It says so itself, by not being ready.
  stranded: undefined,
  suspect: "Suspect",
  dead: "Down",
};

/** What a node knows of one gateway at one moment. */
export interface Sight {
  /** Name of the pod. */
  readonly gateway: string;
  readonly pulse: Pulse;
  /** What the status of the Egress says of it. */
  readonly told: GatewayStatus["state"] | undefined;
  /** How many nodes have clients of the Egress, about. */
  readonly nodes: number;
  /** On a clock that never jumps. */
  readonly nowMs: number;
  /** RFC 3339. */
  readonly time: string;
}

/** What a node has to say of one gateway. */
export interface Stance {
  readonly pulse: Pulse;
  /** RFC 3339. */
  readonly since: string;
  /** What its slice says. */
  readonly report?: GatewayReport;
  /** When it will say something else, unless that is needless by then. */
  readonly dueAtMs?: number;
}

/**
 * @param before undefined of a gateway that is new
 * @param random uniform, from 0 up to 1
 */
export function nextStance(before: Stance | undefined, sight: Sight, random: () => number): Stance {
  const { gateway, pulse, nodes, nowMs, time } = sight;
  const { report } = before ?? {};
  const since = before?.pulse === pulse ? before.since : time;
  const state = REPORTED[pulse];
  const stance = { pulse, since, ...(report && { report }) };
  if (state === report?.state || (report === undefined && !isNews(sight))) return stance;
  const waitMs = report === undefined ? randomWaitMs(nodes, random()) : pulse === "dead" ? 0 : CALM_MS;
  const dueAtMs = before?.dueAtMs ?? nowMs + waitMs;
  if (nowMs < dueAtMs) return { ...stance, dueAtMs };
  return { pulse, since, ...(state && { report: { gateway, state, since } }) };
}

/** What other nodes report is in the status as well; of one that is not ready it says so in any case. */
function isNews({ pulse, told }: Sight): boolean {
  return told === "Ready" || (told === "Suspect" && pulse === "dead");
}

/**
 * How long a node waits for others: the first few waits of all are far apart, most others come late. They are spread as those
 * of receivers that may all miss the same packet of a multicast (https://www.rfc-editor.org/rfc/rfc5401): with a
 * uniform wait many nodes would report before the status that the first one causes has reached them.
 *
 * @param nodes that may report the same; the only one does not wait
 * @param random uniform, from 0 up to 1
 */
function randomWaitMs(nodes: number, random: number): number {
  const maxMs = Math.min(MAX_WAIT_MS, (nodes - 1) * WAIT_PER_NODE_MS);
  const lambda = Math.log(nodes) + 1;
  return (maxMs / lambda) * Math.log1p(random * Math.expm1(lambda));
}
