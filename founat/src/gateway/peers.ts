import { isIPv4 } from "node:net";
import { canonicalAddress } from "../cidr.ts";
import type { Difference } from "../difference.ts";
import { FounatError } from "../error.ts";
import { FAMILIES, type Family } from "../family.ts";
import { VERSION } from "../nft/per-family.ts";
import type { NftTableState } from "../nft/state.ts";
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
      command("delete", inner, out[family], (address, { mark }) => `${address} . ${mark}`),
      command(
        "add",
        clients,
        into[family],
        (address, { id, mark }) => `${address} comment "${id}" : ${mark}`,
      ),
      command("add", inner, into[family], (address, { mark }) => `${address} . ${mark}`),
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
  const differences: Difference[] = [];
  const lines: string[] = [];
  const strangers: string[] = [];
  const wanted = byFamily(peers);
  for (const family of FAMILIES) {
    const ofClients = new Map(
      wanted[family].map(([address, { id, mark }]) => [
        `${address} : ${mark}`,
        `${address} comment "${id}" : ${mark}`,
      ]),
    );
    const ofInner = new Map(
      wanted[family].map(([address, { mark }]) => [`${address} . ${mark}`, `${address} . ${mark}`]),
    );
    for (const [kind, name, elements] of [
      ["map", `clients${VERSION[family]}`, ofClients],
      ["set", `inner${VERSION[family]}`, ofInner],
    ] as const) {
      const actual = (sets.get(name)?.elements ?? []).map(({ text }) => text);
      const extra = actual.filter((text) => !elements.has(text));
      const present = new Set(actual);
      const missing = [...elements].filter(([text]) => !present.has(text));
      if (extra.length + missing.length > 0)
        differences.push({ object: kind, text: `nft ${kind} ${GATEWAY_TABLE} ${name} has other elements` });
      // An entry of a map goes by its key.
      const keys = extra.map((text) => text.replace(/ : .*/, ""));
      if (kind === "map") strangers.push(...keys.filter((address) => !peers.has(address)));
      lines.push(
        elementCommand("delete", name, keys),
        elementCommand(
          "add",
          name,
          missing.map(([, spelled]) => spelled),
        ),
      );
    }
  }
  return { differences, script: lines.join(""), strangers };
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
  for (const entry of peers) entries[isIPv4(entry[0]) ? "ipv4" : "ipv6"].push(entry);
  return entries;
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
