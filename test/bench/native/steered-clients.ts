import { CachedEgressView, gatewaysInUse, Steerer, type SteererOptions } from "@egress-nat/client-sidecar";
import type { ClientConfig, ClientGateway, KnownClient } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { clientIn, clientInNetns, clientNames, netnsPath, withPodNetworks } from "./clients.ts";
import { EgressStores, type Gateway, NAT, SPEC } from "./egress-stores.ts";

type Registry = SteererOptions["registry"];
export type Pulse = SteererOptions["view"]["pulse"];

/** What a gateway is for: new flows, or those that it has; undefined: it is not there for the client. */
export type Use = ClientGateway["flows"];

/** Clients of one Egress, and the part of a node agent that leads their flows to its gateways. */
export class SteeredClients {
  readonly #names: readonly string[];
  readonly #records: readonly NonNullable<ReturnType<Registry["get"]>>[];
  readonly #gateways: readonly Gateway[];
  readonly #stores = new EgressStores();
  readonly #view: CachedEgressView;
  readonly #failed = Promise.withResolvers<never>();
  readonly #known = new Map<string, KnownClient>();
  readonly #followed = new Map<string, ClientConfig>();
  readonly #changed = new Set<string>();
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
    this.#view = new CachedEgressView(this.#stores, {
      place: { nodeName: "node", zone: undefined },
      pulse,
    });
    this.#view.onChange(() => this.steer());
    this.#steerer = new Steerer({
      registry: {
        get: (id) => this.#records.find((record) => id.startsWith(`${record.containerId}:`)),
        isOwner: () => true,
      },
      view: this.#view,
      networks: {
        steer: (netns, config) =>
          this.#steer(netns, config).catch((err: unknown) => {
            this.#failed.reject(err);
            throw err;
          }),
      },
      // A look would make all links anew, because veths are not what it expects.
      reapplier: { reapply: () => undefined, expectChanges: () => undefined, expectLook: () => undefined },
      logger: createLogger({ name: "bench", level: "warn" }),
    });
  }

  /** Those that are watched for the clients. */
  get gateways(): ReturnType<typeof gatewaysInUse> {
    return gatewaysInUse({ values: () => this.#records }, this.#view);
  }

  /** What each client's flows follow, by its network namespace. */
  get configs(): ReadonlyMap<string, ClientConfig> {
    return this.#followed;
  }

  /** Makes the network namespaces of the clients and steers them while `work` goes on. It fails where one cannot be steered. */
  async during(work: () => Promise<void>): Promise<void> {
    const ended = new AbortController();
    const running = this.#steerer.run(ended.signal);
    await withPodNetworks(this.#names, () => Promise.race([this.#work(work), this.#failed.promise]));
    ended.abort();
    await running;
  }

  /** Of how many clients the kernel was changed since the last time that this was asked. */
  takeChanged(): number {
    const { size } = this.#changed;
    this.#changed.clear();
    return size;
  }

  /** Has all follow the gateways as they are now. */
  steer(): void {
    this.#steerer.steer(this.#records);
  }

  /** Which gateways there are, told as the API tells it. */
  tellOf(gateways: readonly Gateway[]): void {
    this.#stores.tellOf(gateways);
  }

  /** Until it is true of what a gateway is for, with each client and in each family. */
  until({ addresses }: Gateway, isTrue: (use: Use) => boolean): Promise<void> {
    const isFollowed = (name: string) =>
      addresses.every((address) => isTrue(useOf(address, this.#followed.get(netnsPath(name)))));
    let missing = this.#names;
    return new Promise((resolve) => {
      const check = () => {
        // To ask all of them each time would take longer than what is measured.
        while (missing[0] !== undefined && isFollowed(missing[0])) missing = missing.slice(1);
        if (missing.length > 0 || !this.#names.every(isFollowed)) return;
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

  /** Makes it a client the first time. */
  async #steer(netns: string, config: ClientConfig): Promise<boolean> {
    const client = clientInNetns(netns);
    const before = this.#known.get(netns);
    const after =
      before === undefined ? (await client.repair(config)).known : await client.steer(config, before);
    if (after === undefined) throw new Error(`nothing was done in ${netns}`);
    this.#known.set(netns, after);
    this.#followed.set(netns, config);
    const isChanged = after !== before;
    if (isChanged) this.#changed.add(netns);
    for (const check of this.#waiting) check();
    return isChanged;
  }
}

function useOf(address: string, config: ClientConfig | undefined): Use {
  const gateways = config?.egresses.flatMap((egress) => egress.gateways) ?? [];
  const found = gateways.find(({ ipv4, ipv6 }) => [ipv4, ipv6].includes(address));
  return found && (found.flows ?? "new");
}
