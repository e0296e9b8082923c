/** The gateway program. Its public face is for those who run it with other effects: tests and benchmarks. */

export { EgressPod, type EgressPodOptions } from "./egress-pod.ts";
export type { GatewayPort } from "./gateway-sync.ts";
export { Metrics } from "./metrics.ts";
export { askUplinksBy } from "./uplink/others.ts";
export { ping } from "./uplink/ping.ts";
export { Uplink } from "./uplink/uplink.ts";
