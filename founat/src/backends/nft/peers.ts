import { FAMILIES, type Family, isAddress } from "@egress-nat/addresses";
import type { Peer, PeerChanges, Peers } from "../../gateway/peers.ts";
import type { PeerDifferences } from "../backend.ts";
import { byFamily, elementDifferences, type PeerEntry } from "../peer-elements.ts";
import { VERSION } from "../spelling.ts";
import { GATEWAY_TABLE } from "./gateway-table.ts";
import type { NftTableState } from "./state.ts";
import { nftScript } from "./table.ts";

/** The clients that the kernel holds: an element's comment is the client's id. */
export function peersOf(table: NftTableState | undefined): Peers {
  const peers = new Map<string, Peer>();
  for (const name of ["clients4", "clients6"]) {
    for (const { text, comment } of table?.sets.get(name)?.elements ?? []) {
      const [address = "", mark] = text.split(" : ");
      // What is no address is no client's, for instance `*`; the comparison with the kernel takes it away.
      if (isAddress(address)) peers.set(address, { id: comment ?? "", mark: Number(mark) });
    }
  }
  return peers;
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
  return FAMILIES.flatMap((family) => [
    ...PEER_SETS.map(({ name, key }) => elementCommand("delete", name, family, out[family].map(key))),
    ...PEER_SETS.map(({ name, entry }) => elementCommand("add", name, family, into[family].map(entry))),
  ]).join("");
}

/** Compares the sets of clients element by element: each may have been changed by itself. No table, no sets. */
export function peerDifferences(
  peers: Peers,
  table: Pick<NftTableState, "sets"> | undefined,
): PeerDifferences {
  if (table === undefined) return { differences: [], steps: [], strangers: [] };
  const found = FAMILIES.flatMap((family) =>
    PEER_SETS.map(({ kind, name, separator, entry }) => {
      const set = `${name}${VERSION[family]}`;
      const elements = table.sets.get(set)?.elements ?? [];
      const { extra, missing } = elementDifferences(peers, family, elements, separator);
      // An entry of a map goes by its key.
      const keys = extra.map(({ address, text }) => (kind === "map" ? address : text));
      return {
        difference: { object: kind, text: `nft ${kind} ${GATEWAY_TABLE} ${set} has other elements` },
        script:
          elementCommand("delete", name, family, keys) +
          elementCommand("add", name, family, missing.map(entry)),
        // `*` is every address that no other element has: it is no source of flows that conntrack could be asked for.
        strangers: kind === "map" ? keys.filter((address) => isAddress(address) && !peers.has(address)) : [],
      };
    }),
  );
  const script = found.map(({ script }) => script).join("");
  return {
    differences: found.filter(({ script }) => script !== "").map(({ difference }) => difference),
    steps: script === "" ? [] : [nftScript(script)],
    strangers: found.flatMap(({ strangers }) => strangers),
  };
}

const clientsKey = ([address]: PeerEntry) => address;
const clientsEntry = ([address, { id, mark }]: PeerEntry) => `${address} comment "${id}" : ${mark}`;
const innerEntry = ([address, { mark }]: PeerEntry) => `${address} . ${mark}`;

/** The sets of clients, without the family in their names. */
const PEER_SETS = [
  { kind: "map", name: "clients", separator: " : ", key: clientsKey, entry: clientsEntry },
  { kind: "set", name: "inner", separator: " . ", key: innerEntry, entry: innerEntry },
] as const;

function elementCommand(
  verb: "add" | "delete",
  set: string,
  family: Family,
  elements: readonly string[],
): string {
  if (elements.length === 0) return "";
  return `${verb} element inet ${GATEWAY_TABLE} ${set}${VERSION[family]} { ${elements.join(", ")} }\n`;
}
