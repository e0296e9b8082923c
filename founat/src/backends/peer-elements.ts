import { type Family, familyOf } from "@egress-nat/addresses";
import type { Peer, Peers } from "../gateway/peers.ts";

export type PeerEntry = readonly [address: string, peer: Peer];

/**
 * Compares what is in one set with what should be. Keeps nothing of those that agree: they may be ten thousand.
 *
 * @param elements as text: an address, `separator` and its client's mark
 */
export function elementDifferences(
  peers: Peers,
  family: Family,
  elements: Iterable<{ readonly text: string }>,
  separator: string,
) {
  const present = new Set<string>();
  const extra: { readonly address: string; readonly text: string }[] = [];
  for (const { text } of elements) {
    const [address = "", mark] = text.split(separator);
    if (peers.get(address)?.mark === Number(mark)) present.add(address);
    else extra.push({ address, text });
  }
  const missing: PeerEntry[] = [];
  for (const [address, peer] of peers) {
    if (familyOf(address) === family && !present.has(address)) missing.push([address, peer]);
  }
  return { extra, missing };
}

export function byFamily(peers: Peers): Record<Family, PeerEntry[]> {
  const entries: Record<Family, PeerEntry[]> = { ipv4: [], ipv6: [] };
  for (const entry of peers) entries[familyOf(entry[0])].push(entry);
  return entries;
}
