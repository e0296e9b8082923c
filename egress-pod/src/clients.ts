import type { GatewayClient } from "@egress-nat/founat";
import type { GatewaySlice, SliceEntry } from "./slice.ts";

/** Clients by their id. */
export type Clients = ReadonlyMap<string, GatewayClient>;

/**
 * The clients that slices name. Of two entries that claim one address the later one has it: the earlier pod is gone,
 * and its node has not said so yet.
 */
export function clientsOf(slices: Iterable<GatewaySlice>): Clients {
  const holders = new Map<string, SliceEntry>();
  const entries: SliceEntry[] = [];
  let contested = false;
  for (const slice of slices) {
    for (const entry of slice.entries) {
      entries.push(entry);
      for (const address of entry.addresses) {
        const holder = holders.get(address);
        contested ||= holder !== undefined;
        if (holder === undefined || isLater(entry, holder)) holders.set(address, entry);
      }
    }
  }
  const clients = new Map<string, GatewayClient>();
  for (const entry of entries) {
    const isHeld = (address: string) => holders.get(address) === entry;
    const addresses = contested ? entry.addresses.filter(isHeld) : entry.addresses;
    if (addresses.length > 0) clients.set(entry.id, { id: entry.id, addresses });
  }
  return clients;
}

export interface ClientChange {
  /** New clients, and those with other addresses than before. */
  readonly put: readonly GatewayClient[];
  /** Ids of clients that are gone. */
  readonly remove: readonly string[];
}

/** What leads from one set of clients to another. */
export function changeOf(from: Clients, to: Clients): ClientChange {
  const put = [...to.values()].filter((client) => !hasAddresses(from.get(client.id), client.addresses));
  const remove = [...from.keys()].filter((id) => !to.has(id));
  return { put, remove };
}

function isLater(entry: SliceEntry, other: SliceEntry): boolean {
  // Equal times are settled somehow, but by all gateways alike.
  return entry.addedAtMs === other.addedAtMs ? entry.id > other.id : entry.addedAtMs > other.addedAtMs;
}

function hasAddresses(client: GatewayClient | undefined, addresses: readonly string[]): boolean {
  return (
    client !== undefined &&
    client.addresses.length === addresses.length &&
    client.addresses.every((address, index) => address === addresses[index])
  );
}
