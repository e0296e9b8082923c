import type { Backend, FilterState, TransactionCounts } from "../backends/backend.ts";
import { IptablesBackend } from "../backends/iptables/backend.ts";
import { NftBackend } from "../backends/nft/backend.ts";
import type { Changes, Difference } from "../difference.ts";
import { FounatError } from "../error.ts";
import { linkChanges } from "../iproute/links.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Logger } from "../logger.ts";
import { gatewayChanges } from "./changes.ts";
import type { GatewayBackend, GatewayClient, GatewayConfig } from "./config.ts";
import { endFlows, sourcesOfFlows } from "./flows.ts";
import { missingPeers, PeerBook, type PeerChanges, type Peers } from "./peers.ts";
import { type GatewayFacts, planGateway } from "./plan.ts";
import { type GatewayState, gatewayFacts, readGatewayState } from "./state.ts";
import { checkSysctls } from "./sysctls.ts";

/** What a gateway needs of a kernel. */
export type GatewayKernel = Pick<Kernel, "run" | "read">;

/** Where something may have been changed. */
export interface Suspicion {
  /** Whether in the elements of the packet filter's sets too, of which there are as many as clients. */
  readonly elements: boolean;
}

/**
 * The gateway side, in one network namespace. All calls take effect in the order they are made. Clients survive a
 * restart of the program in the kernel; {@link init} finds them there.
 */
export class Gateway {
  readonly #kernel: GatewayKernel;
  readonly #backends: Readonly<Record<GatewayBackend, Backend>>;
  readonly #logger: Logger;
  #config: GatewayConfig;
  /** Undefined until the kernel has been read, and after a failure: its state is not known then. */
  #book: PeerBook | undefined;
  /** Addresses that were taken from a client and whose flows may still be there. */
  readonly #flowsToEnd = new Set<string>();
  /** The backend that is known to be the only one with a packet filter here. */
  #only: Backend | undefined;
  /** Whether the flows are ended that a former process left when it was killed between two steps of a change. */
  #leftoversEnded = false;
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
    this.#backends = { nftables: new NftBackend(kernel), iptables: new IptablesBackend(kernel) };
  }

  get #backend(): Backend {
    return this.#backends[this.#config.backend ?? "nftables"];
  }

  /**
   * Brings the namespace to what the configuration says. Idempotent; the packet filter comes first, so that in every
   * order of failures and restarts only known clients pass.
   *
   * @throws FounatError `forwarding-disabled`, `strict-reverse-path-filter`, `uplink-missing`, `backend-unavailable`,
   *   `kernel-command-failed`, `unexpected-output`, `invalid-config`
   */
  init(): Promise<void> {
    return this.#inOrder(async () => void (await this.#apply()));
  }

  /** Changes the configuration while traffic flows. Throws as {@link init}. */
  configure(config: GatewayConfig): Promise<void> {
    return this.#inOrder(async () => {
      this.#config = config;
      await this.#apply();
    });
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

  /** How often this gateway has changed its packet filter, and what tells of all changes. */
  get transactions(): TransactionCounts {
    return this.#backend.transactions;
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
      const all = elements || !this.#elementsCompared;
      const state = await readGatewayState(this.#kernel, this.#backend, { elements: all });
      const { differences } = await this.#changes(state);
      if (!all) return differences;
      const { peers } = await this.#knownPeers();
      const ofClients = state.filter.peerDifferences(peers).differences;
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
      const filter = changed ? await this.#backend.read({ elements: true }) : state.filter;
      const { steps, strangers } = filter.peerDifferences(peers);
      for (const address of strangers) this.#flowsToEnd.add(address);
      await this.#backend.run(steps);
      await this.#endFlows();
    });
  }

  /**
   * How many packets were dropped, by the reason, since the packet filter was made.
   *
   * @throws FounatError `kernel-command-failed`, `unexpected-output`
   */
  drops(): Promise<ReadonlyMap<string, number>> {
    return this.#backend.drops();
  }

  async #apply(): Promise<{ readonly changed: boolean; readonly state: GatewayState }> {
    const others = await Promise.all((await this.#others()).map(leftBy));
    const state = await readGatewayState(this.#kernel, this.#backend, { elements: true });
    const { exists, fastPath } = state.filter;
    // With the same clients by the same marks: what both let through passes while both are there.
    const newcomers = new Map(
      others.flatMap(({ filter }) => [...missingPeers(filter.peers(), state.filter.peers())]),
    );
    const { steps, differences, facts } = await this.#changes(state, newcomers);
    if (steps.length > 0) {
      await this.#backend.run(steps);
      const { uplink, marksWayBack } = facts;
      this.#logger.info(
        { uplink: uplink.name, fastPath, marksWayBack, differences: differences.length },
        "gateway applied",
      );
    }
    for (const { backend, filter } of others) {
      await backend.run(filter.removal);
      this.#book = undefined;
    }
    this.#only = this.#backend;
    const isFirst = others.length === 0 && !exists;
    // No packet filter, no former process.
    this.#leftoversEnded ||= isFirst;
    if (isFirst) this.#book ??= new PeerBook();
    return { changed: steps.length > 0, state };
  }

  /** Other backends that have a packet filter here. */
  async #others(): Promise<readonly Backend[]> {
    if (this.#only === this.#backend) return [];
    const others = Object.values(this.#backends).filter((backend) => backend !== this.#backend);
    const exist = await Promise.all(others.map((backend) => backend.exists()));
    const left = others.filter((_backend, index) => exist[index]);
    if (left.length === 0) this.#only = this.#backend;
    return left;
  }

  async #changes(
    state: GatewayState,
    newcomers: Peers = new Map(),
  ): Promise<Changes & { readonly facts: GatewayFacts }> {
    const facts = gatewayFacts(state, this.#config.addresses);
    checkSysctls(state, facts);
    const plan = planGateway(this.#config, facts);
    const links = linkChanges(plan, state);
    const present = new Set(state.links.map(({ name }) => name));
    const filter = await state.filter.changes(plan.policy, { present, replaced: links.replaced }, newcomers);
    return { facts, ...gatewayChanges(plan, state, links, filter) };
  }

  async #knownPeers(): Promise<PeerBook> {
    // Until another backend's filter is gone it knows them better.
    if ((await this.#others()).length > 0) await this.#apply();
    if (this.#book !== undefined) return this.#book;
    const filter = await this.#backend.read({ elements: true });
    const peers = filter.peers();
    // A filter that knows a client by two records may disagree with itself, and refuse what is taken from both.
    await this.#backend.run(filter.peerDifferences(peers).steps);
    this.#book = new PeerBook(peers);
    return this.#book;
  }

  async #change(book: PeerBook, changes: PeerChanges): Promise<void> {
    for (const address of changes.removed.keys()) this.#flowsToEnd.add(address);
    const committed = allOf(this.#backend.peerSteps(changes).map((step) => this.#backend.run([step])));
    // While it works; after a failure the book is given up, whatever it says.
    book.commit(changes);
    await committed;
    // Not before the elements are gone: the next packet would make a new entry.
    await this.#endFlows();
    this.#logger.debug({ put: changes.put.size, removed: changes.removed.size }, "gateway clients changed");
  }

  async #endFlows(): Promise<void> {
    await endFlows(this.#kernel, this.#flowsToEnd);
    this.#flowsToEnd.clear();
  }

  async #endLeftovers({ peers }: PeerBook): Promise<void> {
    if (this.#leftoversEnded) return;
    const sources = await sourcesOfFlows(this.#kernel);
    await endFlows(
      this.#kernel,
      sources.filter((source) => !peers.has(source)),
    );
    this.#leftoversEnded = true;
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {
      this.#only = undefined;
      this.#book = undefined;
      this.#elementsCompared = false;
    });
    return result;
  }
}

/**
 * The packet filter of a backend that has one.
 *
 * @throws FounatError `unexpected-output` where it tells of nothing: its clients would be lost
 */
async function leftBy(
  backend: Backend,
): Promise<{ readonly backend: Backend; readonly filter: FilterState }> {
  const filter = await backend.read({ elements: true });
  if (filter.exists) return { backend, filter };
  throw new FounatError("unexpected-output", "the packet filter of another backend cannot be read", {
    retryable: true,
  });
}

/** Waits for all, also where one fails: nothing of them goes on behind what comes next. */
async function allOf(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
