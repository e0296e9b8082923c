import { setTimeout as sleep } from "node:timers/promises";
import { CachedEgressView, Steerer, type SteererOptions, Turns } from "@egress-nat/client-sidecar";
import type { ClientConfig, ClientGateway, KnownClient } from "@egress-nat/founat";
import { done, WorkQueue } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { clientIn, clientInNetns, clientNames, netnsPath, withPodNetworks } from "./clients.ts";
import { EgressStores, type Gateway, NAT, SPEC } from "./egress-stores.ts";

type Registry = SteererOptions["registry"];
export type Pulse = SteererOptions["view"]["pulse"];

/** What a gateway is for: new flows, or those that it has; undefined: it is not there for the client. */
export type Use = ClientGateway["flows"];

/** As an agent has it. */
const LOOKS_AT_ONCE = 4;

/** Clients of one Egress, and the part of a node agent that leads their flows to its gateways. */
export class SteeredClients {
  readonly #names: readonly string[];
  readonly #records: readonly NonNullable<ReturnType<Registry["get"]>>[];
  readonly #gateways: readonly Gateway[];
  readonly #stores = new EgressStores();
  readonly #failed = Promise.withResolvers<never>();
  readonly #turns = new Turns();
  readonly #looks = new WorkQueue({ concurrency: LOOKS_AT_ONCE, backoff: { baseMs: 100, maxMs: 1_000 } });
  readonly #known = new Map<string, KnownClient>();
  readonly #wanted = new Map<string, ClientConfig>();
  readonly #followed = new Map<string, ClientConfig>();
  readonly #waiting = new Set<() => void>();
  readonly #steerer: Steerer;

  /**
   * @param gateways those that there are at first
   * @param pulse what is heard of an address of a gateway
   */
  constructor(count: number, gateways: readonly Gateway[], pulse: Pulse) {
    this.#names = clientNames(count);
    this.#records = this.#names.map((name) => ({
      ...{ network: "pods", containerId: name, netns: netnsPath(name), ifname: "eth0", addresses: [] },
      ...{ pod: { namespace: "bench", name, uid: name }, addedAt: "2026-01-01T00:00:00.000Z" },
      egresses: [{ ...NAT, ...SPEC }],
    }));
    this.#gateways = gateways;
    const view = new CachedEgressView(this.#stores, {
      place: { nodeName: "node", zone: undefined },
      pulse,
    });
    view.onChange(() => this.steer());
    this.#steerer = new Steerer({
      registry: {
        get: (id) => this.#records.find((record) => id.startsWith(`${record.containerId}:`)),
        isOwner: () => true,
      },
      view,
      networks: { steer: (netns, config) => this.#inTurn(netns, () => this.#steer(netns, config)) },
      reapplier: {
        reapply: (looked) => {
          for (const { containerId } of looked) this.#looks.add(netnsPath(containerId));
        },
        expectChanges: () => undefined,
      },
      logger: createLogger({ name: "bench", level: "warn" }),
    });
  }

  /** What each client's flows follow, by its network namespace. */
  get configs(): ReadonlyMap<string, ClientConfig> {
    return this.#followed;
  }

  /** Makes the network namespaces of the clients and steers them while `work` goes on. It fails where one cannot be steered. */
  async during(work: () => Promise<void>): Promise<void> {
    const ended = new AbortController();
    const looks = this.#looks.run(async (netns) => {
      await this.#inTurn(netns, () => this.#look(netns));
      return done;
    }, ended.signal);
    const running = Promise.all([this.#steerer.run(ended.signal), looks]);
    await withPodNetworks(this.#names, () => Promise.race([this.#work(work), this.#failed.promise]));
    ended.abort();
    await running;
  }

  /** Has all follow the gateways as they are now. */
  steer(): void {
    this.#steerer.steer(this.#records);
  }

  /** Which gateways there are, told as the API tells it. */
  tellOf(gateways: readonly Gateway[]): void {
    this.#stores.tellOf(gateways);
  }

  /** Until nobody is steered, nor looked at after that. */
  async settled(): Promise<void> {
    while (!this.#steerer.isIdle || this.#looks.depth + this.#looks.active > 0) await sleep(50);
  }

  /** Until it is true of what a gateway is for, with each client and in each family. */
  until({ addresses }: Gateway, isTrue: (use: Use) => boolean): Promise<void> {
    const isReached = () =>
      this.#followed.size === this.#names.length &&
      [...this.#followed].every(([netns, config]) =>
        addresses.every((address) => isTrue(this.#useOf(netns, config, address))),
      );
    return new Promise((resolve) => {
      const check = () => {
        if (!isReached()) return;
        this.#waiting.delete(check);
        resolve();
      };
      this.#waiting.add(check);
      check();
    });
  }

  /** Asks the kernel at an address of a gateway through the tunnel of one client. */
  probe(address: string): Promise<boolean | undefined> {
    const [name = ""] = this.#names;
    const known = this.#known.get(netnsPath(name));
    if (known === undefined) return Promise.resolve(undefined);
    return clientIn(name).probeGateway(known, address);
  }

  /** Conntrack marks of the flows that a gateway has from one client, by its addresses. */
  marksTo({ addresses }: Gateway): number[] {
    const known = this.#known.get(netnsPath(this.#names[0] ?? ""));
    return addresses.flatMap((address) => known?.markTo(address) ?? []);
  }

  async #work(work: () => Promise<void>): Promise<void> {
    this.#stores.fill(this.#gateways);
    await Promise.all(this.#gateways.map((gateway) => this.until(gateway, (use) => use === "new")));
    await work();
  }

  /** Nothing without a tunnel to it. */
  #useOf(netns: string, { egresses: [egress] }: ClientConfig, address: string): Use {
    const found = egress?.gateways.find(({ ipv4, ipv6 }) => [ipv4, ipv6].includes(address));
    const isLinked = this.#known.get(netns)?.markTo(address) !== undefined;
    return isLinked ? found && (found.flows ?? "new") : undefined;
  }

  async #inTurn<T>(netns: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#turns.take(netns, work);
    } catch (err) {
      this.#failed.reject(err);
      throw err;
    }
  }

  /** @returns undefined where a look has to do it */
  async #steer(netns: string, config: ClientConfig): Promise<boolean | undefined> {
    this.#wanted.set(netns, config);
    const before = this.#known.get(netns);
    const after = before && (await clientInNetns(netns).steer(config, before));
    if (after === undefined) return undefined;
    this.#follows(netns, config, after);
    return after !== before;
  }

  async #look(netns: string): Promise<void> {
    const config = this.#wanted.get(netns);
    if (config !== undefined) this.#follows(netns, config, (await clientInNetns(netns).repair(config)).known);
  }

  #follows(netns: string, config: ClientConfig, known: KnownClient): void {
    this.#known.set(netns, known);
    this.#followed.set(netns, config);
    for (const check of this.#waiting) check();
  }
}
