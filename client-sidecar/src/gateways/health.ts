/** What gateways say of themselves over the heartbeat. */

import { HEARTBEAT_PORT, UPLINK_LOST_KEY } from "@egress-nat/crds";
import type { HeartbeatProber, ProbeOptions } from "@egress-nat/founat";
import type { BeatQuestion } from "./heartbeats.ts";
import type { Beat } from "./pulse.ts";
import type { Gateway } from "./view.ts";

/** A gateway on the next node answers in less than a millisecond; a busy one may need some. */
const PROBE_TIMEOUT_MS = 500;

/** What gateways say over the heartbeat that they have applied. */
export interface SliceVersion {
  readonly uid: string;
  /** Of the object; undefined once it is deleted. */
  readonly generation: number | undefined;
}

/** What one gateway says of one slice. */
export type Answer = "applied" | "behind" | "silent";

/** Asks one gateway whether it has applied a slice. */
export type Ask = (gateway: Gateway, version: SliceVersion, signal: AbortSignal) => Promise<Answer>;

/**
 * Asks over the heartbeat.
 *
 * @param port UDP port of the gateways
 */
export function askBy(prober: Pick<HeartbeatProber, "probe">, port: number = HEARTBEAT_PORT): Ask {
  return async ({ addresses }, version, signal) => {
    const options = { timeoutMs: PROBE_TIMEOUT_MS, signal };
    const values = await anyAnswer(prober, addresses, port, [version.uid], options);
    if (values === undefined) return "silent";
    return hasApplied(values.get(version.uid), version) ? "applied" : "behind";
  };
}

/**
 * Asks over the heartbeat how the program in a gateway is, whatever it has applied.
 *
 * @param port UDP port of the gateways
 */
export function beatBy(
  prober: Pick<HeartbeatProber, "probe">,
  port: number = HEARTBEAT_PORT,
): (address: string, question: BeatQuestion) => Promise<Beat> {
  return async (address, { probesUplink, timeoutMs }) => {
    const keys = probesUplink ? [UPLINK_LOST_KEY] : [];
    // A node that has no such family has no socket for it.
    const values = await prober.probe(address, port, keys, { timeoutMs }).catch(() => undefined);
    return values && (values.has(UPLINK_LOST_KEY) ? "stranded" : "alive");
  };
}

/** The node may have a route to the gateway in one family only. */
function anyAnswer(
  prober: Pick<HeartbeatProber, "probe">,
  addresses: readonly string[],
  port: number,
  keys: readonly string[],
  options: ProbeOptions,
): Promise<ReadonlyMap<string, string> | undefined> {
  const answers = addresses.map(async (address) => {
    const values = await prober.probe(address, port, keys, options);
    if (values === undefined) throw new Error("no answer");
    return values;
  });
  return Promise.any(answers).catch(() => undefined);
}

/** A gateway that does not know a slice trusts none of its clients. */
function hasApplied(value: string | undefined, { generation }: SliceVersion): boolean {
  if (generation === undefined) return value === undefined;
  return value !== undefined && Number(value) >= generation;
}
