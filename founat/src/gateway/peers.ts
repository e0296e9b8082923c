import { isIP, isIPv4 } from "node:net";
import { VERSION } from "../backends/nft/per-family.ts";
import type { NftElementState, NftTableState } from "../backends/nft/state.ts";
import type { Difference } from "../difference.ts";
import { FounatError } from "../error.ts";
import { FAMILIES, type Family } from "../family.ts";
import { canonicalAddress } from "../routing/cidr.ts";
import type { GatewayClient } from "./config.ts";
import { GATEWAY_TABLE } from "./table.ts";

/** A client, as the kernel knows it by each of its addresses. */
export interface Peer {
  /** The client's id; it is the comment of the elements, so that a restarted gateway knows whose mark it is. */
  readonly id: string;
  readonly mark: number;
}

/** Address -> its client. */
export type Peers = ReadonlyMap<string, Peer>;

export interface PeerChanges {
  readonly put: Peers;
  /** Addresses that no client has any more, or another one: their flows must end. */
  readonly removed: Peers;
}

/** What the gateway's clients are, and what has to change for them to be others. Pure bookkeeping, no effects. */
export class PeerBook {
  readonly #peers = new Map<string, Peer>();
  readonly #clients = new Map<string, { readonly peer: Peer; readonly addresses: string[] }>();
  #lastMark = 0;

  /** @param peers what the kernel holds */
  constructor(peers: Peers = new Map()) {
    for (const [address, peer] of peers) this.#set(address, peer);
  }

  get peers(): Peers {
    return this.#peers;
  }

  /** What makes `clients` the only ones. */
  sync(clients: Iterable<GatewayClient>): PeerChanges {
    const wanted = byId(clients);
    return this.#difference(
      wanted,
      [...this.#clients.keys()].filter((id) => !wanted.has(id)),
    );
  }

  /**
   * What adds or changes some clients and removes others. An address that two clients name belongs to the later one,
   * and of two entries with one id the later counts.
   *
   * @throws FounatError `invalid-config` for what is no address, or an id that cannot be a comment
   */
  change(put: Iterable<GatewayClient>, remove: Iterable<string>): PeerChanges {
    return this.#difference(byId(put), remove);
  }

  /** Takes note of changes that the kernel has taken. */
  commit({ put, removed }: PeerChanges): void {
    for (const [address, peer] of removed) this.#unset(address, peer);
    for (const [address, peer] of put) this.#set(address, peer);
  }

  #difference(clients: ReadonlyMap<string, GatewayClient>, remove: Iterable<string>): PeerChanges {
    let lastMark = this.#lastMark;
    const put = new Map<string, Peer>();
    for (const { id, addresses } of clients.values()) {
      const peer = this.#clients.get(id)?.peer ?? { id, mark: ++lastMark };
      for (const address of addresses) put.set(canonicalAddress(address), peer);
    }
    const removed = new Map<string, Peer>();
    // The clients of a gateway that starts, ten thousand perhaps: there is nothing to compare them with.
    if (this.#clients.size === 0) return { put, removed };
    for (const id of [...remove, ...clients.keys()]) {
      for (const address of this.#clients.get(id)?.addresses ?? []) {
        const before = this.#peers.get(address);
        if (before !== undefined && put.get(address) !== before) removed.set(address, before);
      }
    }
    for (const [address, peer] of put) {
      const before = this.#peers.get(address);
      if (before === peer) put.delete(address);
      else if (before !== undefined) removed.set(address, before);
    }
    return { put, removed };
  }

  #set(address: string, peer: Peer): void {
    const client = this.#clients.get(peer.id);
    this.#peers.set(address, client?.peer.mark === peer.mark ? client.peer : peer);
    if (client === undefined) this.#clients.set(peer.id, { peer, addresses: [address] });
    else client.addresses.push(address);
    this.#lastMark = Math.max(this.#lastMark, peer.mark);
  }

  #unset(address: string, { id }: Peer): void {
    this.#peers.delete(address);
    const addresses = this.#clients.get(id)?.addresses ?? [];
    addresses.splice(addresses.indexOf(address), 1);
    if (addresses.length === 0) this.#clients.delete(id);
  }
}

/** Fewer addresses are not worth a process of their own. */
const SMALLEST_SHARE = 2_000;

/**
 * The same changes as several transactions, for as many processors: with thousands of clients nft is busy with its own
 * parser. Only where all of them are new, so that it does not matter which is first.
 */
export function inShares({ put, removed }: PeerChanges, processors: number): readonly PeerChanges[] {
  const count = Math.min(processors, Math.floor(put.size / SMALLEST_SHARE));
  if (removed.size > 0 || count < 2) return [{ put, removed }];
  const entries = [...put];
  const size = Math.ceil(entries.length / count);
  return Array.from({ length: count }, (_, index) => ({
    put: new Map(entries.slice(index * size, (index + 1) * size)),
    removed,
  }));
}

/** One transaction for `nft -f`; empty when there is nothing to change. */
export function peerScript({ put, removed }: PeerChanges): string {
  const [out, into] = [byFamily(removed), byFamily(put)];
  return FAMILIES.flatMap((family) => {
    const [clients, inner] = [`clients${VERSION[family]}`, `inner${VERSION[family]}`];
    return [
      command("delete", clients, out[family], (address) => address),
      command("delete", inner, out[family], innerEntry),
      command("add", clients, into[family], clientsEntry),
      command("add", inner, into[family], innerEntry),
    ];
  }).join("");
}

/** How the sets of clients differ from `peers`. */
export interface PeerDifferences {
  /** Empty when they agree. */
  readonly differences: readonly Difference[];
  /** One transaction for `nft -f` that makes them agree. */
  readonly script: string;
  /** Addresses of nobody that the kernel takes for a client's. */
  readonly strangers: readonly string[];
}

/** Compares the sets of clients element by element: each may have been changed by itself. */
export function peerDifferences(peers: Peers, { sets }: Pick<NftTableState, "sets">): PeerDifferences {
  const found = FAMILIES.flatMap((family) =>
    PEER_SETS.map(({ kind, name, separator, entry }) => {
      const set = `${name}${VERSION[family]}`;
      const elements = sets.get(set)?.elements ?? [];
      const { extra, missing } = elementDifferences(peers, family, elements, separator);
      // An entry of a map goes by its key.
      const keys = kind === "map" ? extra.map(({ address }) => address) : extra.map(({ text }) => text);
      const added = missing.map(([address, peer]) => entry(address, peer));
      return {
        isSame: keys.length + added.length === 0,
        difference: { object: kind, text: `nft ${kind} ${GATEWAY_TABLE} ${set} has other elements` },
        script: elementCommand("delete", set, keys) + elementCommand("add", set, added),
        // `*` is every address that no other element has: it is no source of flows that conntrack could be asked for.
        strangers: kind === "map" ? keys.filter((address) => isIP(address) !== 0 && !peers.has(address)) : [],
      };
    }),
  );
  return {
    differences: found.filter(({ isSame }) => !isSame).map(({ difference }) => difference),
    script: found.map(({ script }) => script).join(""),
    strangers: found.flatMap(({ strangers }) => strangers),
  };
}

/** The sets of clients, without the family in their names. */
const PEER_SETS = [
  { kind: "map", name: "clients", separator: " : ", entry: clientsEntry },
  { kind: "set", name: "inner", separator: " . ", entry: innerEntry },
] as const;

/** Keeps nothing of those that agree: they may be ten thousand. */
function elementDifferences(
  peers: Peers,
  family: Family,
  elements: Iterable<NftElementState>,
  separator: string,
) {
  const present = new Set<string>();
  const extra: { readonly address: string; readonly text: string }[] = [];
  for (const { text } of elements) {
    const [address = "", mark] = text.split(separator);
    if (peers.get(address)?.mark === Number(mark)) present.add(address);
    else extra.push({ address, text });
  }
  const missing: [string, Peer][] = [];
  for (const [address, peer] of peers) {
    if (familyOf(address) === family && !present.has(address)) missing.push([address, peer]);
  }
  return { extra, missing };
}

function clientsEntry(address: string, { id, mark }: Peer): string {
  return `${address} comment "${id}" : ${mark}`;
}

function innerEntry(address: string, { mark }: Peer): string {
  return `${address} . ${mark}`;
}

function command(
  verb: "add" | "delete",
  set: string,
  peers: readonly (readonly [string, Peer])[],
  element: (address: string, peer: Peer) => string,
): string {
  return elementCommand(
    verb,
    set,
    peers.map(([address, peer]) => element(address, peer)),
  );
}

function elementCommand(verb: "add" | "delete", set: string, elements: readonly string[]): string {
  if (elements.length === 0) return "";
  return `${verb} element inet ${GATEWAY_TABLE} ${set} { ${elements.join(", ")} }\n`;
}

function byFamily(peers: Peers): Record<Family, [string, Peer][]> {
  const entries: Record<Family, [string, Peer][]> = { ipv4: [], ipv6: [] };
  for (const entry of peers) entries[familyOf(entry[0])].push(entry);
  return entries;
}

function familyOf(address: string): Family {
  return isIPv4(address) ? "ipv4" : "ipv6";
}

function byId(clients: Iterable<GatewayClient>): Map<string, GatewayClient> {
  const map = new Map<string, GatewayClient>();
  for (const client of clients) {
    checkId(client.id);
    // Not in the place of the entry before: the order decides about addresses.
    if (map.has(client.id)) map.delete(client.id);
    map.set(client.id, client);
  }
  return map;
}

function checkId(id: string): void {
  if (!/^[\w./:-]{1,120}$/.test(id)) {
    throw new FounatError(
      "invalid-config",
      `client id ${JSON.stringify(id)} must be 1 to 120 letters, digits, or characters of ._/:-`,
    );
  }
}
