import type { Kernel } from "../../kernel/kernel.ts";
import { type NftTableState, parseTable } from "./state.ts";
import { type NftTable, renderTable } from "./table.ts";
import type { OwnTransactions } from "./transactions.ts";

/** By what nft read, of which the clients of a node share most. Who was asked last is the last. */
const listings = new Map<string, NftTableState>();

/** A node has fewer clients; with each gateway that comes or goes they ask for other ones. About 30 kB each. */
const MAX_LISTINGS = 256;

/**
 * How nft lists `table` without its elements. It prints rules in another spelling than it reads, and in another one in
 * each version; so it is asked itself, in an empty network namespace, once for each text of the last {@link MAX_LISTINGS}.
 *
 * @throws FounatError `kernel-command-failed`, also where no namespace can be made (that takes CAP_SYS_ADMIN)
 */
export async function tableListing(table: NftTable, kernel: Kernel): Promise<NftTableState | undefined> {
  const text = renderTable(withoutElements(table));
  const listing = listings.get(text) ?? (await askedAside(text, table.name, kernel));
  if (listing === undefined) return undefined;
  listings.delete(text);
  listings.set(text, listing);
  const [oldest] = listings.keys();
  if (oldest !== undefined && listings.size > MAX_LISTINGS) listings.delete(oldest);
  return listing;
}

async function askedAside(text: string, name: string, kernel: Kernel): Promise<NftTableState | undefined> {
  const [, output] = await kernel.runAside([
    { file: "nft", args: ["-f", "-"], input: text },
    { file: "nft", args: ["-j", "list", "table", "inet", name] },
  ]);
  return parseTable(output ?? "");
}

/** To its caller a question, which leaves nothing: one step, because the steps of a read have no order. */
const LIST_AND_REMOVE = 'nft -f - && nft -j list table inet "$1" && nft delete table inet "$1"';

/** Transactions of {@link DormantListing.of} that asks nft. */
const TRANSACTIONS = 2;

/**
 * How nft lists a table, where no network namespace can be made: nft is asked in the namespace itself, by a table of
 * another name that sleeps, and is there for as long as the question takes. What the kernel has of the table itself
 * plays no part, because somebody else may have changed it.
 */
export class DormantListing {
  /** Of the last text only: it changes with the uplink and the port. */
  #known: { readonly text: string; readonly listing: NftTableState } | undefined;

  /**
   * @param table the devices of its chains must exist
   * @param transactions where those are counted by which it asks
   * @returns without elements
   * @throws FounatError `kernel-command-failed`, `unexpected-output`
   */
  async of(
    table: NftTable,
    kernel: Pick<Kernel, "read">,
    transactions: OwnTransactions,
  ): Promise<NftTableState | undefined> {
    const asleep = sleeping(table);
    const text = renderTable(asleep);
    if (this.#known?.text === text) return this.#known.listing;
    // A program that was killed in between may have left one. Awake it would act.
    const before = `table inet ${asleep.name} { flags dormant; }\ndelete table inet ${asleep.name}\n`;
    const [output] = await transactions.during(TRANSACTIONS, () =>
      kernel.read([{ file: "sh", args: ["-c", LIST_AND_REMOVE, "sh", asleep.name], input: before + text }]),
    );
    const state = parseTable(output ?? "");
    if (state === undefined) return undefined;
    // As that of the one by its own name that does not sleep.
    const { flags: _, ...rest } = JSON.parse(state.definition) as Record<string, unknown>;
    const listing = { ...state, definition: JSON.stringify({ ...rest, name: table.name }) };
    this.#known = { text, listing };
    return listing;
  }
}

function sleeping(table: NftTable): NftTable {
  return {
    ...withoutElements(table),
    name: `${table.name}_listing`,
    dormant: true,
    // A flowtable does not sleep with its table.
    flowtables: (table.flowtables ?? []).map((flowtable) => ({ ...flowtable, devices: ["lo"] })),
  };
}

function withoutElements(table: NftTable): NftTable {
  return { ...table, sets: table.sets.map((set) => ({ ...set, elements: [] })) };
}
