import { Registry } from "prom-client";
import { ClientMetrics } from "../client/metrics.ts";

type Counts = ConstructorParameters<typeof ClientMetrics>[1];

/** The metrics of an agent that has nothing to count, but what a test cares about. */
export function agentMetrics(registry = new Registry(), counts: Partial<Counts> = {}): ClientMetrics {
  const none = () => 0;
  return new ClientMetrics(registry, {
    ...{ clients: none, tombstones: none, invalidEgresses: none },
    driftWatchUp: () => 1,
    ...counts,
  });
}
