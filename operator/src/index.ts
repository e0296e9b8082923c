/** The operator's public face, for tests and benchmarks that run it in their own process. */

export { CHILD_RESOURCES, desiredChildren, type GatewaySettings } from "./egress/children/index.ts";
export { OperatorMetrics } from "./metrics.ts";
export { EgressOperator, type EgressOperatorOptions } from "./operator.ts";
