import { availableParallelism } from "node:os";
import { DormantListing } from "../backends/nft/listing.ts";
import type { NftTableState } from "../backends/nft/state.ts";
import { OwnTransactions, type TransactionCounts } from "../backends/nft/transactions.ts";
import type { Difference } from "../difference.ts";
import { linkName } from "../iproute/links.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Logger } from "../logger.ts";
import { gatewayChanges } from "./changes.ts";
import type { GatewayClient, GatewayConfig } from "./config.ts";
import { parseDrops, READ_DROPS } from "./drops.ts";
import { endFlows, liveFlows, masqueradedSources, READ_FLOWS } from "./flows.ts";
import { inShares, PeerBook, type PeerChanges, peerDifferences, peerScript } from "./peers.ts";
import { type GatewayPlan, planGateway } from "./plan.ts";
import { checkSysctls, type GatewayState, gatewayFacts, peersOf, readGatewayState } from "./state.ts";
import { CLIENT_SETS } from "./table.ts";

/** What a gateway needs of a kernel. */
export type GatewayKernel = Pick<Kernel, "run" | "read">;

/** Where something may have been changed. */
export interface Suspicion {
  /** Whether in the elements of nftables' sets too: they change by transactions, and nft tells of each. */
  readonly elements: boolean;
}

/**
 * The gateway side, in one network namespace. All calls take effect in the order they are made. Clients survive a
 * restart of the program in the kernel; {@link init} finds them there.
 */
export class Gateway {
  readonly #kernel: GatewayKernel;
  readonly #logger: Logger;
  #config: GatewayConfig;
  /** Undefined until the kernel has been read, and after a failure: its state is not known then. */
  #book: PeerBook | undefined;
  /** Addresses that were taken from a client and whose flows may still be there. */
  readonly #flowsToEnd = new Set<string>();
  /** Whether the flows are ended that a former process left when it was killed between two steps of a change. */
  #leftoversEnded = false;
  readonly #transactions = new OwnTransactions();
  readonly #listing: DormantListing;
  /** Whether all elements were compared since it was last unknown what the kernel holds. */
  #elementsCompared = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    config: GatewayConfig,
    { kernel, logger }: { readonly kernel: GatewayKernel; readonly logger: Logger },
  ) {
    this.#config = config;
    this.#kernel = kernel;
    this.#logger = logger;
    this.#listing = new DormantListing(kernel, this.#transactions);
  }

  /**
   * Brings the namespace to what the configuration says. Idempotent; the packet filter comes first, so that in every
   * order of failures and restarts only known clients pass.
   *
   * @throws FounatError `forwarding-disabled`, `strict-reverse-path-filter`, `uplink-missing`,
   *   `kernel-command-failed`, `unexpected-output`, `invalid-config`
   */
  init(): Promise<void> {
    return this.#inOrder(async () => void (await this.#apply()));
  }

  /** Changes the configuration while traffic flows. Throws as {@link init}. */
  configure(config: GatewayConfig): Promise<void> {
    this.#config = config;
    return this.#inOrder(async () => void (await this.#apply()));
  }

  /**
   * Makes `clients` the only ones. Those that are gone lose their flows as well.
   *
   * @param clients of two that name one address the later one has it
   * @throws FounatError `kernel-command-failed`, `invalid-config`
   */
  sync(clients: Iterable<GatewayClient>): Promise<void> {
    const list = [...clients];
    return this.#inOrder(async () => {
      const book = await this.#knownPeers();
      await this.#change(book, book.sync(list));
      await this.#endLeftovers(book);
    });
  }

  /**
   * Adds or changes some clients and removes others, by id; what it costs does not depend on how many there are.
   *
   * @throws FounatError as {@link sync}
   */
  update(change: {
    readonly put?: Iterable<GatewayClient>;
    readonly remove?: Iterable<string>;
  }): Promise<void> {
    const put = [...(change.put ?? [])];
    const remove = [...(change.remove ?? [])];
    return this.#inOrder(async () => {
      const book = await this.#knownPeers();
      await this.#change(book, book.change(put, remove));
    });
  }

  /** How often this gateway has changed nftables. */
  get transactions(): TransactionCounts {
    return this.#transactions;
  }

  /**
   * Compares the kernel with the configuration and the clients.
   *
   * @param where.elements false: nobody else has changed those of sets since the last comparison, so that what this one
   *   costs does not grow with the clients. The first comparison, and the first after a failure, takes them in all the same.
   * @returns what differs; empty when nothing does
   * @throws FounatError as {@link init}
   */
  check({ elements }: Suspicion = { elements: true }): Promise<readonly Difference[]> {
    return this.#inOrder(async () => {
      if (this.#elementsCompared && !elements) return this.#checkAllButElements();
      const state = await readGatewayState(this.#kernel);
      const { differences } = await this.#changes(state);
      const { peers } = await this.#knownPeers();
      const ofClients = state.table === undefined ? [] : peerDifferences(peers, state.table).differences;
      this.#elementsCompared = true;
      return [...differences, ...ofClients];
    });
  }

  /**
   * Makes the kernel as {@link check} wants it; what is as it should be stays.
   *
   * @throws FounatError as {@link init}
   */
  repair(): Promise<void> {
    return this.#inOrder(async () => {
      // Clients are those of before: the kernel is no record of them now.
      const { peers } = await this.#knownPeers();
      const { changed, state } = await this.#apply();
      const { table } = changed ? await readGatewayState(this.#kernel) : state;
      if (table === undefined) return;
      const { script, strangers } = peerDifferences(peers, table);
      for (const address of strangers) this.#flowsToEnd.add(address);
      await this.#commit(script);
      await this.#endFlows();
    });
  }

  /**
   * How many flows of clients are not over: a gateway that is about to end waits for them.
   *
   * @throws FounatError `kernel-command-failed`
   */
  async liveFlows(): Promise<number> {
    return liveFlows(await this.#kernel.read(READ_FLOWS));
  }

  /**
   * How many packets were dropped, by the reason, since the packet filter was made.
   *
   * @throws FounatError `kernel-command-failed`, `unexpected-output`
   */
  async drops(): Promise<ReadonlyMap<string, number>> {
    return parseDrops((await this.#kernel.read(READ_DROPS))[0] ?? "");
  }

  async #apply(): Promise<{ readonly changed: boolean; readonly state: GatewayState }> {
    const state = await readGatewayState(this.#kernel);
    const { steps, differences, facts } = await this.#changes(state);
    if (steps.length > 0) {
      const count = steps.filter((step) => "file" in step && step.file === "nft").length;
      await this.#transactions.during(count, () => this.#kernel.run(steps));
      const { uplink, flowtables, marksWayBack } = facts;
      this.#logger.info(
        { uplink: uplink.name, fastPath: flowtables, marksWayBack, differences: differences.length },
        "gateway applied",
      );
    }
    // No packet filter, no former process.
    this.#leftoversEnded ||= state.table === undefined;
    if (state.table === undefined) this.#book ??= new PeerBook();
    return { changed: steps.length > 0, state };
  }

  async #checkAllButElements(): Promise<readonly Difference[]> {
    const state = await readGatewayState(this.#kernel, { elements: false });
    const { differences } = await this.#changes(state, { elements: false });
    return differences;
  }

  async #changes(state: GatewayState, { elements } = { elements: true }) {
    const facts = gatewayFacts(state, this.#config.addresses);
    checkSysctls(state, facts);
    const plan = planGateway(this.#config, facts);
    const keep = elements ? CLIENT_SETS : new Set(plan.table.sets.map(({ name }) => name));
    const listing = await this.#listingFor(plan, state);
    return { facts, ...gatewayChanges(plan, state, { keep, listing }) };
  }

  /** A table that is missing, or lacks chains because their links are, is recreated whatever else it holds. */
  async #listingFor({ table, links }: GatewayPlan, state: GatewayState): Promise<NftTableState | undefined> {
    const present = new Set(state.links.map(({ name }) => name));
    const isWhole = state.table !== undefined && links.every((link) => present.has(linkName(link)));
    return isWhole ? this.#listing.of(table) : undefined;
  }

  async #knownPeers(): Promise<PeerBook> {
    if (this.#book !== undefined) return this.#book;
    const { table } = await readGatewayState(this.#kernel);
    const peers = peersOf(table);
    // The map is the record; a set that disagrees would refuse what is taken from both.
    if (table !== undefined) await this.#commit(peerDifferences(peers, table).script);
    this.#book = new PeerBook(peers);
    return this.#book;
  }

  async #change(book: PeerBook, changes: PeerChanges): Promise<void> {
    for (const address of changes.removed.keys()) this.#flowsToEnd.add(address);
    const committed = allOf(
      inShares(changes, availableParallelism()).map((share) => this.#commit(peerScript(share))),
    );
    // While nft works; after a failure the book is given up, whatever it says.
    book.commit(changes);
    await committed;
    // Not before the elements are gone: the next packet would make a new entry.
    await this.#endFlows();
    this.#logger.debug({ put: changes.put.size, removed: changes.removed.size }, "gateway clients changed");
  }

  async #commit(script: string): Promise<void> {
    if (script === "") return;
    await this.#transactions.during(1, () =>
      this.#kernel.run([{ file: "nft", args: ["-f", "-"], input: script }]),
    );
  }

  async #endFlows(): Promise<void> {
    await endFlows(this.#kernel, this.#flowsToEnd);
    this.#flowsToEnd.clear();
  }

  async #endLeftovers({ peers }: PeerBook): Promise<void> {
    if (this.#leftoversEnded) return;
    const sources = masqueradedSources(await this.#kernel.read(READ_FLOWS));
    await endFlows(
      this.#kernel,
      [...sources].filter((source) => !peers.has(source)),
    );
    this.#leftoversEnded = true;
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {
      this.#book = undefined;
      this.#elementsCompared = false;
    });
    return result;
  }
}

/** Waits for all, also where one fails: nothing of them goes on behind what comes next. */
async function allOf(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
