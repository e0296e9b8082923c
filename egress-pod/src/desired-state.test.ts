import { expect, test } from "vitest";
import { changeOf } from "./clients.ts";
import { desiredState } from "./desired-state.ts";
import { GatewayEgress } from "./egress.ts";
import { type GatewaySlice, parseSlice } from "./slice.ts";

const RANGES = ["10.244.0.0/16"];
const ADDRESSES = ["10.244.2.9"];

const EGRESS = GatewayEgress.parse({
  metadata: { name: "egress", namespace: "internet", uid: "e", generation: 1, resourceVersion: "1" },
  spec: {
    destinations: ["0.0.0.0/0", "::/0"],
    excludedDestinations: ["192.0.2.0/24"],
    fouSourcePortAuto: true,
  },
  status: { conditions: "of a later version" },
});

const SLICE: GatewaySlice = {
  metadata: { name: "egress-n1", namespace: "internet", uid: "s", generation: 4, resourceVersion: "2" },
  entries: [{ id: "s/pod", namespace: "apps", addresses: ["10.244.1.2"], addedAt: "2026-01-01T00:00:00Z" }],
};

test("clients reach what their Egress names, without what is in the cluster or excluded", () => {
  const { config, clients, slices } = desiredState(EGRESS, [SLICE], RANGES, ADDRESSES);
  expect(config).toEqual({
    addresses: ADDRESSES,
    port: 5555,
    sourcePortAuto: true,
    destinations: ["0.0.0.0/0", "::/0"],
    excluded: [...RANGES, "192.0.2.0/24"],
    backend: "nftables",
  });
  expect([...clients.keys()]).toEqual(["s/pod"]);
  expect(slices).toEqual(new Map([["s", 4]]));
});

test("a client whose namespace is not allowed is none, while its slice counts as applied", () => {
  const bounded = { ...EGRESS, spec: { ...EGRESS.spec, allowedNamespaces: {} } };
  const status = { allowedNamespaces: ["payments"], observedGeneration: 1 };
  const { clients, slices } = desiredState({ ...bounded, status }, [SLICE], RANGES, ADDRESSES);
  expect(clients.size).toBe(0);
  expect(slices).toEqual(new Map([["s", 4]]));
});

test("without its Egress a gateway serves nobody", () => {
  const { config, clients, slices } = desiredState(undefined, [SLICE], RANGES, ADDRESSES);
  expect(config.destinations).toEqual([]);
  expect(clients.size + slices.size).toBe(0);
});

test("a slice whose agent reports a gateway counts with its new generation, and changes no client", () => {
  const client = { namespace: "apps", name: "pod", uid: "pod", addresses: ["10.244.1.2"] };
  const raw = { nodeName: "n1", clients: [{ ...client, addedAt: "2026-01-01T00:00:00Z" }] };
  const suspects = [{ gateway: "egress-1", state: "Suspect", since: "2026-01-01T00:00:00Z" }];
  const state = (slice: object) =>
    desiredState(EGRESS, [parseSlice({ ...raw, ...slice }, console)], RANGES, ADDRESSES);
  const before = state({ metadata: SLICE.metadata });
  const after = state({ metadata: { ...SLICE.metadata, generation: 5 }, suspects });
  expect(after.slices).toEqual(new Map([["s", 5]]));
  expect(after.config).toEqual(before.config);
  expect(changeOf(before.clients, after.clients)).toEqual({ put: [], remove: [] });
});
