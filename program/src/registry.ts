import { collectDefaultMetrics, Registry } from "prom-client";

/** A metrics registry that already holds the process's own metrics: CPU, memory, event loop, garbage collection. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
