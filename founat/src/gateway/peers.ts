import { isIPv4 } from "node:net";
import { formatAddress, parseAddress } from "../cidr.ts";
import { FounatError } from "../error.ts";
import type { Family } from "../family.ts";
import type { GatewayClient } from "./config.ts";
import { GATEWAY_TABLE } from "./table.ts";

/** One address of a client, as the kernel holds it. */
export interface Peer {
  /** The client's id; it is the comment of the element, so that a restarted gateway knows whose mark it is. */
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
  readonly #clients = new Map<string, { readonly mark: number; readonly addresses: ReadonlySet<string> }>();
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
    const wanted = [...clients];
    const ids = new Set(wanted.map(({ id }) => id));
    return this.change(
      wanted,
      [...this.#clients.keys()].filter((id) => !ids.has(id)),
    );
  }

  /**
   * What adds or changes some clients and removes others. An address that two clients name belongs to the later one,
   * and of two entries with one id the later counts.
   *
   * @throws FounatError `invalid-config` for what is no address, or an id that cannot be a comment
   */
  change(put: Iterable<GatewayClient>, remove: Iterable<string>): PeerChanges {
    const clients = new Map<string, GatewayClient>();
    for (const client of put) {
      checkId(client.id);
      // Not in the place of the entry before: the order decides about addresses.
      clients.delete(client.id);
      clients.set(client.id, client);
    }
    // First all addresses are given up, then taken: one may go from a later client to an earlier one.
    const changes = new Map<string, Peer | undefined>();
    for (const id of [...remove, ...clients.keys()]) {
      for (const address of this.#clients.get(id)?.addresses ?? []) changes.set(address, undefined);
    }
    let lastMark = this.#lastMark;
    for (const { id, addresses } of clients.values()) {
      const mark = this.#clients.get(id)?.mark ?? ++lastMark;
      for (const address of addresses) changes.set(canonicalAddress(address), { id, mark });
    }
    return this.#difference(changes);
  }

  /** Takes note of changes that the kernel has taken. */
  commit({ put, removed }: PeerChanges): void {
    for (const address of removed.keys()) this.#unset(address);
    for (const [address, peer] of put) this.#set(address, peer);
  }

  #difference(changes: ReadonlyMap<string, Peer | undefined>): PeerChanges {
    const put = new Map<string, Peer>();
    const removed = new Map<string, Peer>();
    for (const [address, peer] of changes) {
      const before = this.#peers.get(address);
      if (before?.id === peer?.id && before?.mark === peer?.mark) continue;
      if (before !== undefined) removed.set(address, before);
      if (peer !== undefined) put.set(address, peer);
    }
    return { put, removed };
  }

  #set(address: string, peer: Peer): void {
    this.#unset(address);
    const addresses = this.#clients.get(peer.id)?.addresses ?? [];
    this.#peers.set(address, peer);
    this.#clients.set(peer.id, { mark: peer.mark, addresses: new Set([...addresses, address]) });
    this.#lastMark = Math.max(this.#lastMark, peer.mark);
  }

  #unset(address: string): void {
    const peer = this.#peers.get(address);
    if (peer === undefined) return;
    this.#peers.delete(address);
    const rest = [...(this.#clients.get(peer.id)?.addresses ?? [])].filter((other) => other !== address);
    if (rest.length === 0) this.#clients.delete(peer.id);
    else this.#clients.set(peer.id, { mark: peer.mark, addresses: new Set(rest) });
  }
}

/** One transaction for `nft -f`; empty when there is nothing to change. */
export function peerScript({ put, removed }: PeerChanges): string {
  const lines: string[] = [];
  const command = (verb: string, set: string, elements: readonly string[]) => {
    if (elements.length > 0)
      lines.push(`${verb} element inet ${GATEWAY_TABLE} ${set} { ${elements.join(", ")} }`);
  };
  for (const [family, v] of [["ipv4", 4] as const, ["ipv6", 6] as const]) {
    const out = ofFamily(family, removed);
    const into = ofFamily(family, put);
    command(
      "delete",
      `clients${v}`,
      out.map(([address]) => address),
    );
    command(
      "delete",
      `inner${v}`,
      out.map(([address, { mark }]) => `${address} . ${mark}`),
    );
    command(
      "add",
      `clients${v}`,
      into.map(([address, { id, mark }]) => `${address} comment "${id}" : ${mark}`),
    );
    command(
      "add",
      `inner${v}`,
      into.map(([address, { mark }]) => `${address} . ${mark}`),
    );
  }
  return lines.map((line) => `${line}\n`).join("");
}

/**
 * Lines for `conntrack --load-file` that end the flows of addresses: outer ones in both directions (with automatic
 * source ports the gateway opens some), and inner ones.
 */
export function endFlowsScript(addresses: Iterable<string>): string {
  return Array.from(addresses, (address) => {
    const family = parseAddress(address).family;
    return `-D -f ${family} -s ${address}\n-D -f ${family} -d ${address}\n`;
  }).join("");
}

function ofFamily(family: Family, peers: Peers): [string, Peer][] {
  return [...peers].filter(([address]) => address.includes(":") === (family === "ipv6"));
}

function canonicalAddress(address: string): string {
  // IPv4 has one spelling only; ten thousand clients should not go through a parser for that.
  if (isIPv4(address)) return address;
  const { family, value } = parseAddress(address);
  return formatAddress(family, value);
}

function checkId(id: string): void {
  if (!/^[\w./:-]{1,120}$/.test(id)) {
    throw new FounatError(
      "invalid-config",
      `client id ${JSON.stringify(id)} must be 1 to 120 letters, digits, or characters of ._/:-`,
    );
  }
}
