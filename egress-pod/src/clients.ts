import { isDeepStrictEqual } from "node:util";
import type { GatewayClient } from "@egress-nat/founat";
import type { GatewaySlice, SliceEntry } from "./slice.ts";

/** Clients by their id. */
export type Clients = ReadonlyMap<string, GatewayClient>;

/**
 * The clients that slices name. Of two entries that claim one address the later one has it: the earlier pod is gone,
 * and its node has not said so yet.
 *
 * @param mayUse whether pods of a namespace may be clients. One that may not has its address all the same: nobody else
 *   gets it.
 * @param own the gateway's addresses, in canonical spelling: one that a slice names was a client's before, and the iptables
 *   backend would let nothing leave with it any more
 */
export function clientsOf(
  slices: readonly GatewaySlice[],
  mayUse: (namespace: string) => boolean,
  own: ReadonlySet<string>,
): Clients {
  const holders = new Map<string, SliceEntry>();
  const entries = slices.flatMap((slice) => slice.entries);
  let claims = 0;
  for (const entry of entries) {
    claims += entry.addresses.length;
    for (const address of entry.addresses) {
      if (own.has(address)) continue;
      const holder = holders.get(address);
      if (holder === undefined || isLater(entry, holder)) holders.set(address, entry);
    }
  }
  const isContested = claims > holders.size;
  const clients = new Map<string, GatewayClient>();
  for (const entry of entries) {
    const { id, namespace, addresses } = entry;
    if (!mayUse(namespace)) continue;
    const held = isContested ? addresses.filter((address) => holders.get(address)?.id === id) : addresses;
    if (held.length > 0) clients.set(id, held.length === addresses.length ? entry : { id, addresses: held });
  }
  return clients;
}

/**
 * What leads from one set of clients to another.
 *
 * @returns to put: new clients, and those with other addresses than before; to remove: ids of clients that are gone
 */
export function changeOf(from: Clients, to: Clients) {
  const put = [...to.values()].filter((client) => {
    const before = from.get(client.id);
    // Of a slice that has not changed: the very same entry.
    return before !== client && !isDeepStrictEqual(before?.addresses, client.addresses);
  });
  const remove = [...from.keys()].filter((id) => !to.has(id));
  return { put, remove };
}

function isLater(entry: SliceEntry, other: SliceEntry): boolean {
  const [time, otherTime] = [milliseconds(entry.addedAt), milliseconds(other.addedAt)];
  // Equal times are settled somehow, but by all gateways alike.
  return time === otherTime ? entry.id > other.id : time > otherTime;
}

/** Since the epoch, with fractions: Date.parse() drops what is finer than a millisecond. What is no time is earliest. */
function milliseconds(time: string): number {
  const finer = /\.\d{3}(\d+)/.exec(time)?.[1];
  return (Date.parse(time) || 0) + (finer === undefined ? 0 : Number(`0.${finer}`));
}
