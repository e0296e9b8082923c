import type { ClientRecord } from "../records/schema.ts";

/** A client of Egress internet/nat, with what a test cares about in place of the defaults. */
export function clientRecord(fields: Partial<ClientRecord> = {}): ClientRecord {
  return {
    network: "pods",
    containerId: "c0ffee",
    netns: "/run/netns/cni-1",
    ifname: "eth0",
    pod: { namespace: "apps", name: "web", uid: "u-1" },
    addresses: ["10.244.0.5"],
    addedAt: "2026-01-01T00:00:00.000Z",
    egresses: [
      {
        namespace: "internet",
        name: "nat",
        destinations: ["0.0.0.0/0"],
        excludedDestinations: [],
        originatingOnly: true,
        fouSourcePortAuto: false,
        gatewaySelection: "Service",
        sessionAffinity: "ClientIP",
      },
    ],
    ...fields,
  };
}
