import type { Kernel } from "../kernel.ts";
import { type NftTableState, parseTable } from "./state.ts";
import { type NftTable, renderTable } from "./table.ts";

/** By what nft read. All clients of a node have the same few. */
const listings = new Map<string, NftTableState>();

/**
 * How nft lists `table` without its elements. It prints rules in another spelling than it reads, and in another one in
 * each version; so it is asked itself, in an empty network namespace, once for each text.
 *
 * @throws FounatError `kernel-command-failed`, also where no namespace can be made (that takes CAP_SYS_ADMIN)
 */
export async function tableListing(table: NftTable, kernel: Kernel): Promise<NftTableState | undefined> {
  const text = renderTable({ ...table, sets: table.sets.map((set) => ({ ...set, elements: [] })) });
  const known = listings.get(text);
  if (known !== undefined) return known;
  const [, output] = await kernel.runAside([
    { file: "nft", args: ["-f", "-"], input: text },
    { file: "nft", args: ["-j", "list", "table", "inet", table.name] },
  ]);
  const listing = parseTable(output ?? "");
  if (listing !== undefined) listings.set(text, listing);
  return listing;
}
