import { Registry } from "prom-client";
import { AgentMetrics } from "../node-agent/metrics.ts";

type Counts = ConstructorParameters<typeof AgentMetrics>[1];

/** The metrics of an agent that has nothing to count, but what a test cares about. */
export function agentMetrics(registry = new Registry(), counts: Partial<Counts> = {}): AgentMetrics {
  const none = () => 0;
  return new AgentMetrics(registry, {
    ...{ clients: none, tombstones: none, invalidEgresses: none },
    driftWatchUp: () => 1,
    ...counts,
  });
}
