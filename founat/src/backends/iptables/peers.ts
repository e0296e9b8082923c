import { isIPv4 } from "node:net";
import { FAMILIES, type Family } from "../../family.ts";
import type { Peer, PeerChanges, Peers } from "../../gateway/peers.ts";
import type { PeerDifferences } from "../backend.ts";
import { ipsetStep, type Sets, setName } from "./sets.ts";

type PeerEntry = readonly [address: string, peer: Peer];

const hex = (mark: number) => `0x${mark.toString(16)}`;
const innerKey = ([address, { mark }]: PeerEntry) => `${address},${hex(mark)}`;

/** The sets of clients: each may be changed by itself, and one alone lets nothing pass. */
const PEER_SETS = [
  {
    kind: "inner",
    key: innerKey,
    entry: innerKey,
    parse: (text: string) => text.split(",") as [string, string],
  },
  {
    kind: "clients",
    key: ([address]: PeerEntry) => address,
    entry: ([address, { id, mark }]: PeerEntry) => `${address} skbmark ${hex(mark)} comment "${id}"`,
    parse: (text: string) => [/^\S+/.exec(text)?.[0] ?? "", / skbmark (\S+)/.exec(text)?.[1] ?? ""] as const,
  },
] as const;

/** The clients that the kernel holds: an element's comment is the client's id. */
export function peersOf(sets: Sets): Peers {
  const [, { parse }] = PEER_SETS;
  const elements = FAMILIES.flatMap((family) => sets.get(setName("clients", family)) ?? []);
  return new Map(
    elements.map((text) => {
      const [address, mark] = parse(text);
      return [address, { id: / comment "(.*?)"/.exec(text)?.[1] ?? "", mark: Number(mark) }];
    }),
  );
}

/** Lines for ipset, those of one set together: it sends them to the kernel as one. */
export function peerLines({ put, removed }: PeerChanges): string[] {
  const [out, into] = [byFamily(removed), byFamily(put)];
  return FAMILIES.flatMap((family) => [
    ...PEER_SETS.flatMap(({ kind, key }) => out[family].map((e) => `del ${setName(kind, family)} ${key(e)}`)),
    ...PEER_SETS.flatMap(({ kind, entry }) =>
      into[family].map((e) => `add ${setName(kind, family)} ${entry(e)}`),
    ),
  ]);
}

/** Compares the sets of clients element by element. What is missing altogether is made with the policy. */
export function peerDifferences(peers: Peers, sets: Sets): PeerDifferences {
  const wanted = byFamily(peers);
  const found = FAMILIES.flatMap((family) =>
    PEER_SETS.map(({ kind, entry, parse }) => {
      const name = setName(kind, family);
      const present = new Set<string>();
      const extra = (sets.get(name) ?? []).flatMap((text) => {
        const [address, mark] = parse(text);
        if (peers.get(address)?.mark !== Number(mark)) return [{ address, key: text.split(" ", 1)[0] ?? "" }];
        present.add(address);
        return [];
      });
      const missing = wanted[family].filter(([address]) => !present.has(address));
      return {
        isSame: extra.length + missing.length === 0,
        difference: { object: "set", text: `ipset set ${name} has other elements` },
        lines: [
          ...extra.map(({ key }) => `del ${name} ${key}`),
          ...missing.map((peer) => `add ${name} ${entry(peer)}`),
        ],
        strangers: kind === "clients" ? extra.map(({ address }) => address).filter((a) => !peers.has(a)) : [],
      };
    }),
  );
  return {
    differences: found.filter(({ isSame }) => !isSame).map(({ difference }) => difference),
    steps: ipsetStep(found.flatMap(({ lines }) => lines)),
    strangers: found.flatMap(({ strangers }) => strangers),
  };
}

function byFamily(peers: Peers): Record<Family, PeerEntry[]> {
  const entries: Record<Family, PeerEntry[]> = { ipv4: [], ipv6: [] };
  for (const entry of peers) entries[isIPv4(entry[0]) ? "ipv4" : "ipv6"].push(entry);
  return entries;
}
