import { guardOf } from "../backends/nft/guard.ts";
import type { Changes, Difference } from "../difference.ts";
import { FounatError } from "../error.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Logger } from "../logger.ts";
import { isNarrow } from "../routing/cidr.ts";
import { clientChanges, clientCreation, clientRemoval } from "./changes.ts";
import type { ClientConfig } from "./config.ts";
import { Known, type KnownClient } from "./known.ts";
import { type ClientPlan, planClient } from "./plan.ts";
import { probeGateway, probeTunnels, type SilentTunnel, type TunnelProbeOptions } from "./probe.ts";
import { clientFacts, readClientState, readNetwork } from "./state.ts";

/** What a look at a client's network namespace led to. */
export interface Repair {
  /** What differed, and does so no longer. */
  readonly differences: readonly Difference[];
  /** Where specific routes of the namespace's own lead: what goes there uses no gateway of a wide destination. */
  readonly localRoutes: readonly string[];
  /** What there is now. */
  readonly known: KnownClient;
}

/** Gateways that wait for the marks of others come with the second, and after it there may be one way only. */
const MAX_LOOKS = 3;

/** One client's network namespace. It keeps no state of its own: the kernel is the record of what is applied. */
export class Client {
  readonly #kernel: Kernel;
  readonly #logger: Logger;

  constructor({ kernel, logger }: { readonly kernel: Kernel; readonly logger: Logger }) {
    this.#kernel = kernel;
    this.#logger = logger;
  }

  /**
   * Brings the namespace to what `config` says. Idempotent, and safe to interrupt at any point: guarded destinations
   * are reached through the tunnel or not at all.
   *
   * @returns whether anything had to be changed
   * @throws FounatError `invalid-config`, `uplink-missing`, `kernel-command-failed`, `kernel-command-killed`,
   *   `unexpected-output`
   */
  async apply(config: ClientConfig): Promise<{ changed: boolean }> {
    return { changed: (await this.repair(config)).differences.length > 0 };
  }

  /**
   * As {@link apply}, for callers that report what was changed.
   *
   * @param signal ends it as long as nothing was changed: it looks for most of its time
   * @throws FounatError as {@link apply}; the reason of the signal
   */
  async repair(config: ClientConfig, signal?: AbortSignal): Promise<Repair> {
    const found = new Map<string, Difference>();
    let until = signal;
    const attempt = async () => {
      const { differences, steps, ...looked } = await endedBy(until, () => this.#changes(config));
      for (const difference of differences) found.set(difference.text, difference);
      if (steps.length > 0) until = undefined;
      await this.#kernel.run(steps);
      return looked;
    };
    const look = () =>
      attempt().catch((err: unknown) => {
        // The kernel goes on between a look and a step: a router's route that was to be taken away may have run out.
        if (!isFailedCommand(err)) throw err;
        this.#logger.debug({ err }, "a step failed: looking again");
        return attempt();
      });
    let looked = await look();
    for (let looks = 1; looked.isInterim && looks < MAX_LOOKS; looks += 1) looked = await look();
    const { localRoutes, known, isInterim } = looked;
    if (isInterim)
      this.#logger.warn(
        { uplink: config.uplink },
        "some gateways wait until others have gone: there are more than a client tells apart",
      );
    const differences = [...found.values()];
    if (differences.length > 0) this.#logger.debug({ differences }, "client applied");
    return { differences, localRoutes, known };
  }

  /**
   * As {@link apply}, with fewer looks, for a namespace that is usually not a client yet, because a pod waits for it.
   * Where somebody has, or a step fails, all is looked at and repaired.
   *
   * @returns what there is then
   * @throws FounatError as {@link apply}
   */
  async setUp(config: ClientConfig): Promise<KnownClient> {
    try {
      const network = await readNetwork(this.#kernel, config.uplink);
      const facts = clientFacts(network, config.uplink);
      const plan = planClient(config, facts);
      await this.#kernel.run(clientCreation(plan, network));
      return new Known(config, facts, plan);
    } catch (err) {
      if (!isFailedCommand(err)) throw err;
      this.#logger.debug({ err }, "not a new client, or a step failed: looking at all of it");
      return (await this.repair(config)).known;
    }
  }

  /**
   * Leads flows where `config` says, sooner than {@link repair}, which does all else and has to follow: by one
   * transaction, without a look.
   *
   * @param known what the last of {@link setUp}, {@link repair} and {@link steer} has left
   * @returns what there is then; undefined where nothing was done, because it takes more than other ways through tunnels that
   *   are there
   * @throws FounatError `kernel-command-failed` also where something known is not there any more
   */
  async steer(config: ClientConfig, known: KnownClient): Promise<KnownClient | undefined> {
    if (!(known instanceof Known))
      throw new TypeError("what is known of a client is what a Client has returned");
    const steering = known.steering(config);
    await this.#kernel.run(steering?.steps ?? []);
    return steering?.known;
  }

  /**
   * Compares the kernel with `config`.
   *
   * @returns what differs, in words; empty when nothing does
   * @throws FounatError as {@link apply}
   */
  async check(config: ClientConfig): Promise<string[]> {
    return (await this.#changes(config)).differences.map(({ text }) => text);
  }

  /**
   * Asks, by a packet through each tunnel and back, whether a gateway is at its other end. It says nothing about what is
   * applied here ({@link check} does), and much about the network between: who drops the tunnel's packets on their way
   * there or back.
   *
   * @returns the tunnels through which no answer came
   */
  probe(config: ClientConfig, options: TunnelProbeOptions): Promise<readonly SilentTunnel[]> {
    return probeTunnels(this.#kernel, config, options);
  }

  /**
   * Asks the kernel of one gateway, through the tunnel that flows take which it has, whoever gets new ones. An answer says
   * nothing of the program in the gateway.
   *
   * @param address the gateway's
   * @returns whether it has answered within half a second; undefined where the client has no tunnel to it
   */
  probeGateway(known: KnownClient, address: string): Promise<boolean | undefined> {
    return probeGateway(this.#kernel, known, address);
  }

  /**
   * Takes away all that {@link apply} made but for sysctls, whose former values nobody knows.
   *
   * @param uplink while an interface of that name is there, nothing is taken away: programs that have not ended yet have
   *   no way around the tunnel by it
   * @returns whether nothing is left
   */
  async remove(uplink?: string): Promise<boolean> {
    const state = await readClientState(this.#kernel);
    if (state.links.some(({ name }) => name === uplink)) return false;
    await this.#kernel.run(clientRemoval(state));
    return true;
  }

  async #changes(
    config: ClientConfig,
  ): Promise<Changes & Omit<Repair, "differences"> & Pick<ClientPlan, "isInterim">> {
    const state = await readClientState(this.#kernel, config);
    const facts = clientFacts(state, config.uplink);
    const plan = planClient(config, facts);
    const guard = guardOf(plan.policy);
    const listing =
      state.guard &&
      (await guard.listing(this.#kernel).catch((err: unknown) => {
        const message = "cannot see how nft lists the guard: of its rules only comments are compared";
        this.#logger.warn({ err }, message);
        return undefined;
      }));
    const changes = clientChanges(plan, state, guard.changes(state.guard, listing));
    return {
      ...changes,
      isInterim: plan.isInterim,
      localRoutes: wideOnes(facts.mainRoutes, config),
      known: new Known(config, facts, plan),
    };
  }
}

/** Each once, in order; those within private or in-cluster ranges take nothing from a gateway. */
function wideOnes(routes: readonly string[], { clusterRanges }: ClientConfig): string[] {
  return [...new Set(routes)].filter((route) => !isNarrow(route, clusterRanges)).sort();
}

/** @param look what of it goes on after the signal changes nothing */
async function endedBy<T>(signal: AbortSignal | undefined, look: () => Promise<T>): Promise<T> {
  signal?.throwIfAborted();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = () => reject(signal?.reason);
  signal?.addEventListener("abort", end);
  return await Promise.race([look(), ended]).finally(() => signal?.removeEventListener("abort", end));
}

/** A command that did not hang, but found the kernel otherwise than it was expected to be. */
function isFailedCommand(err: unknown): boolean {
  return err instanceof FounatError && err.code === "kernel-command-failed";
}
