import { FAMILIES } from "@egress-nat/addresses";
import type { PeerChanges, Peers } from "../../gateway/peers.ts";
import type { PeerDifferences } from "../backend.ts";
import { byFamily, elementDifferences, type PeerEntry } from "../peer-elements.ts";
import { hex } from "../spelling.ts";
import { ipsetStep, type Sets, setName } from "./sets.ts";

const innerKey = ([address, { mark }]: PeerEntry) => `${address},${hex(mark)}`;
const clientsKey = ([address]: PeerEntry) => address;
const clientsEntry = ([address, { id, mark }]: PeerEntry) =>
  `${address} skbmark ${hex(mark)} comment "${id}"`;

/** The sets of clients: each may be changed by itself, and one alone lets nothing pass. */
const PEER_SETS = [
  { kind: "inner", key: innerKey, entry: innerKey },
  { kind: "clients", key: clientsKey, entry: clientsEntry },
] as const;

/** An address and its mark, with a comma between them as ipset prints those of the inner sets. */
function keyAndMark(text: string): string {
  return text.replace(/^(\S+)(?:.* skbmark (\S+))?.*/, (_, key, mark) =>
    mark === undefined ? key : `${key},${mark}`,
  );
}

/** The clients that the kernel holds: an element's comment is the client's id. */
export function peersOf(sets: Sets): Peers {
  const elements = FAMILIES.flatMap((family) => sets.get(setName("clients", family)) ?? []);
  return new Map(
    elements.map((text) => {
      const [address = "", mark] = keyAndMark(text).split(",");
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
  const found = FAMILIES.flatMap((family) =>
    PEER_SETS.map(({ kind, entry }) => {
      const name = setName(kind, family);
      const elements = (sets.get(name) ?? []).map((text) => ({ text: keyAndMark(text) }));
      const { extra, missing } = elementDifferences(peers, family, elements, ",");
      const lines = [
        ...extra.map(({ address, text }) => `del ${name} ${kind === "clients" ? address : text}`),
        ...missing.map((peer) => `add ${name} ${entry(peer)}`),
      ];
      const strangers = kind === "clients" ? extra.filter(({ address }) => !peers.has(address)) : [];
      return { name, lines, strangers: strangers.map(({ address }) => address) };
    }),
  );
  return {
    differences: found
      .filter(({ lines }) => lines.length > 0)
      .map(({ name }) => ({ object: "set", text: `ipset set ${name} has other elements` })),
    steps: ipsetStep(found.flatMap(({ lines }) => lines)),
    strangers: found.flatMap(({ strangers }) => strangers),
  };
}
