import type { LoadReport } from "./load-report.ts";

/** How many failures are told: after a death there are many, and all alike. */
const TOLD = 10;

/**
 * What the figures of a round do not tell: which new connections of a client failed, and which of its flows waited longest.
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
  return [...failed.slice(0, TOLD), ...more, ...waitedLongest];
}
