import type { AddRequest } from "../cni/protocol.ts";

/** What the plugin asks for pod apps/web, with what a test cares about in place of the defaults. */
export function addRequest(fields: Partial<AddRequest> = {}): AddRequest {
  return {
    operation: "add",
    network: "pods",
    containerId: "c1",
    netns: "/run/netns/c1",
    ifname: "eth0",
    pod: { namespace: "apps", name: "web", uid: "u-1" },
    addresses: ["10.244.0.5"],
    annotations: { "egress.coil.cybozu.com/internet": "nat" },
    ...fields,
  };
}
