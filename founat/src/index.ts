/** The data path of egress NAT: FoU tunnels, policy routing, SNAT. It knows no Kubernetes. */

export { type Addresses, FAMILIES, type Family } from "@egress-nat/addresses";
export type { TransactionCounts, TransactionMonitor } from "./backends/backend.ts";
export { Client, type Repair } from "./client/client.ts";
export type { ClientConfig, ClientEgress, ClientGateway } from "./client/config.ts";
export type { KnownClient } from "./client/known.ts";
export type { Refusals } from "./client/policy.ts";
export type { SilentTunnel, TunnelProbeOptions } from "./client/probe.ts";
export type { Difference } from "./difference.ts";
export { FounatError, type FounatErrorCode } from "./error.ts";
export type { GatewayBackend, GatewayClient, GatewayConfig } from "./gateway/config.ts";
export { liveFlows } from "./gateway/flows.ts";
export { Gateway, type Suspicion } from "./gateway/gateway.ts";
export { prepareGatewayNetns } from "./gateway/netns.ts";
export { GatewayWatch, type GatewayWatchOptions } from "./gateway/watch.ts";
export { HeartbeatProber, type ProbeOptions } from "./heartbeat/prober.ts";
export { HeartbeatResponder, type HeartbeatResponderOptions } from "./heartbeat/responder.ts";
export { ForkServer } from "./kernel/fork-server.ts";
export { type Kernel, type KernelOptions, kernelHere, kernelThrough } from "./kernel/kernel.ts";
export { kernelInNetns, type NetnsKernelOptions } from "./kernel/netns.ts";
export type { ProcessResult } from "./kernel/process.ts";
export type { Step } from "./kernel/step.ts";
export type { Logger } from "./logger.ts";
export { isNarrow, PRIVATE_RANGES, parseAddress, parseCidr } from "./routing/cidr.ts";
export { normalizeCidrs } from "./routing/nesting.ts";
export { type NetnsWatch, type NetnsWatchOptions, openNetnsWatch } from "./watch/netns-watch.ts";
