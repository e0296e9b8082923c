import type { Flow, LoadReport } from "./load-report.ts";

/** How many failures are told: after a death there are many, and all alike. */
const TOLD = 10;
/** How many resets are told: the last ones. */
const RESETS_TOLD = 3;

/**
 * What the figures of a round do not tell: which new connections of a client failed, when its flows were
 * reset, and which of the others waited longest.
 *
 * @returns a line each; times are milliseconds since the mark
 */
export function remarksOn({ connections, flows, markedAtMs }: LoadReport): string[] {
  const at = (ms: number) => `${Math.round(ms - markedAtMs)} ms`;
  const failed = connections.flatMap(({ target, failures }) =>
    failures.map(({ atMs, connectedAtMs, failedAtMs, error }) => {
      const handshake = connectedAtMs === undefined ? "no handshake" : `handshake at ${at(connectedAtMs)}`;
      return `a new connection to ${target} at ${at(atMs)}: ${handshake}, ${error} at ${at(failedAtMs)}`;
    }),
  );
  const more = failed.length > TOLD ? [`${failed.length - TOLD} more new connections failed`] : [];
  const waitedLongest = flows
    .filter(({ end }) => end === "survived")
    .toSorted((a, b) => b.longestGapMs - a.longestGapMs)
    .slice(0, 1)
    .map(({ protocol, target, gateway, longestGapMs, longestGapAtMs }) => {
      const gap = `${Math.round(longestGapMs)} ms from ${at(longestGapAtMs)} on`;
      return `a ${protocol} flow to ${target} by gateway ${gateway} waited longest: ${gap}`;
    });
  return [...failed.slice(0, TOLD), ...more, ...resetsIn(flows, at), ...waitedLongest];
}

/**
 * A socket that was closed by the node says "software caused connection abort", one whose next segment was answered by a
 * reset "connection reset by peer".
 */
function resetsIn(flows: readonly Flow[], at: (ms: number) => string): string[] {
  const resets = flows
    .flatMap((flow) => (flow.end === "reset" ? [{ ...flow, endedAtMs: flow.endedAtMs ?? 0 }] : []))
    .toSorted((a, b) => b.endedAtMs - a.endedAtMs);
  const median = resets[Math.floor(resets.length / 2)];
  if (median === undefined) return [];
  const last = resets.slice(0, RESETS_TOLD).map(({ isIdle, target, gateway, endedAtMs, error }) => {
    const kind = isIdle ? "an idle" : "a busy";
    return `${kind} flow to ${target} by gateway ${gateway} was reset at ${at(endedAtMs)}: ${error}`;
  });
  return [`${resets.length} flows were reset, half of them until ${at(median.endedAtMs)}`, ...last];
}
