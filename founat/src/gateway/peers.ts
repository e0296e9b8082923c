import { FounatError } from "../error.ts";
import { canonicalAddress } from "../routing/cidr.ts";
import type { GatewayClient } from "./config.ts";

/** A client, as the kernel knows it by each of its addresses. */
export interface Peer {
  /** The client's id; the kernel keeps it, too, so that a restarted gateway knows whose mark it is. */
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

/** Of `peers` those that `known` lacks, and whose mark it has given to nobody else. */
export function missingPeers(peers: Peers, known: Peers): Peers {
  const owners = new Map(Array.from(known.values(), ({ id, mark }) => [mark, id]));
  return new Map(
    [...peers].filter(([address, { id, mark }]) => !known.has(address) && (owners.get(mark) ?? id) === id),
  );
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
   * @throws FounatError `invalid-config` for what is no address, or an id that the kernel cannot keep
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

function byId(clients: Iterable<GatewayClient>): Map<string, GatewayClient> {
  const map = new Map<string, GatewayClient>();
  for (const client of clients) {
    if (!/^[\w./:-]{1,120}$/.test(client.id)) {
      throw new FounatError(
        "invalid-config",
        `client id ${JSON.stringify(client.id)} must be 1 to 120 letters, digits, or characters of ._/:-`,
      );
    }
    // Not in the place of the entry before: the order decides about addresses.
    if (map.has(client.id)) map.delete(client.id);
    map.set(client.id, client);
  }
  return map;
}
