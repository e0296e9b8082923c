/** The client side of egress-nat: CNI plugin, node agent and installer. Public is only what the build and benchmarks need. */

export { DriftWatch, type DriftWatchOptions } from "./client/drift-watch.ts";
export { gatewaysInUse } from "./client/gateways-in-use.ts";
export { Steerer, type SteererOptions } from "./client/steerer.ts";
export { CachedEgressView, type ViewedStores } from "./gateways/cached-view.ts";
export { beatBy } from "./gateways/health.ts";
export { Heartbeats } from "./gateways/heartbeats.ts";
export { parseStoredEgress } from "./gateways/view.ts";
export { AgentEnvironment, NodeDirectories } from "./node-agent/environment.ts";
