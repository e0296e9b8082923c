import type { Kernel } from "../kernel.ts";
import type { Logger } from "../logger.ts";
import type { Step } from "../step.ts";
import { gatewayChanges } from "./changes.ts";
import type { GatewayClient, GatewayConfig } from "./config.ts";
import { liveFlows, masqueradedSources, READ_FLOWS } from "./flows.ts";
import { endFlowsScript, PeerBook, type PeerChanges, peerScript } from "./peers.ts";
import { planGateway } from "./plan.ts";
import { checkSysctls, gatewayFacts, peersOf, readGatewayState } from "./state.ts";

/** What a gateway needs of a kernel. */
export type GatewayKernel = Pick<Kernel, "run" | "read">;

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
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    config: GatewayConfig,
    { kernel, logger }: { readonly kernel: GatewayKernel; readonly logger: Logger },
  ) {
    this.#config = config;
    this.#kernel = kernel;
    this.#logger = logger;
  }

  /**
   * Brings the namespace to what the configuration says. Idempotent; the packet filter comes first, so that in every
   * order of failures and restarts only known clients pass.
   *
   * @throws FounatError `forwarding-disabled`, `strict-reverse-path-filter`, `uplink-missing`,
   *   `kernel-command-failed`, `unexpected-output`, `invalid-config`
   */
  init(): Promise<void> {
    return this.#inOrder(() => this.#apply());
  }

  /** Changes the configuration while traffic flows. Throws as {@link init}. */
  configure(config: GatewayConfig): Promise<void> {
    this.#config = config;
    return this.#inOrder(() => this.#apply());
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

  /**
   * How many flows of clients are not over: a gateway that is about to end waits for them.
   *
   * @throws FounatError `kernel-command-failed`
   */
  async liveFlows(): Promise<number> {
    return liveFlows(await this.#kernel.read(READ_FLOWS));
  }

  async #apply(): Promise<void> {
    const state = await readGatewayState(this.#kernel);
    const facts = gatewayFacts(state);
    checkSysctls(state, facts);
    const { steps, differences } = gatewayChanges(planGateway(this.#config, facts), state);
    if (steps.length > 0) {
      await this.#kernel.run(steps);
      this.#logger.info(
        { uplink: facts.uplink.name, fastPath: facts.flowtables, differences: differences.length },
        "gateway applied",
      );
    }
    // No packet filter, no former process.
    this.#leftoversEnded ||= state.table === undefined;
    this.#book ??= new PeerBook(peersOf(state.table));
  }

  async #knownPeers(): Promise<PeerBook> {
    this.#book ??= new PeerBook(peersOf((await readGatewayState(this.#kernel)).table));
    return this.#book;
  }

  async #change(book: PeerBook, changes: PeerChanges): Promise<void> {
    for (const address of changes.removed.keys()) this.#flowsToEnd.add(address);
    const steps = [
      ...nftStep(peerScript(changes)),
      // Not before the elements are gone: the next packet would make a new entry.
      ...endFlowsStep(this.#flowsToEnd),
    ];
    if (steps.length === 0) return;
    await this.#kernel.run(steps);
    book.commit(changes);
    this.#flowsToEnd.clear();
    this.#logger.debug({ put: changes.put.size, removed: changes.removed.size }, "gateway clients changed");
  }

  async #endLeftovers({ peers }: PeerBook): Promise<void> {
    if (this.#leftoversEnded) return;
    const sources = masqueradedSources(await this.#kernel.read(READ_FLOWS));
    const strangers = [...sources].filter((source) => !peers.has(source));
    await this.#kernel.run(endFlowsStep(new Set(strangers)));
    this.#leftoversEnded = true;
  }

  #inOrder(work: () => Promise<void>): Promise<void> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {
      this.#book = undefined;
    });
    return result;
  }
}

function nftStep(input: string): Step[] {
  return input === "" ? [] : [{ file: "nft", args: ["-f", "-"], input }];
}

// A file name instead of `-`: conntrack would open /dev/stdin, which not every container has.
function endFlowsStep(addresses: ReadonlySet<string>): Step[] {
  if (addresses.size === 0) return [];
  return [{ file: "conntrack", args: ["--load-file", "/proc/self/fd/0"], input: endFlowsScript(addresses) }];
}
