import { Registry } from "prom-client";
import { type ClientMetrics, clientMetrics } from "../client/metrics.ts";

type Counts = Parameters<typeof clientMetrics>[1];

/** The metrics of an agent that has nothing to count, but what a test cares about. */
export function agentMetrics(registry = new Registry(), counts: Partial<Counts> = {}): ClientMetrics {
  const none = () => 0;
  return clientMetrics(registry, {
    ...{ clients: none, tombstones: none, invalidEgresses: none },
    driftWatchUp: () => 1,
    ...counts,
  });
}
