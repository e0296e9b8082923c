import { Steerer, type SteererOptions } from "@egress-nat/client-sidecar";
import type { ClientConfig, KnownClient } from "@egress-nat/founat";
import { createLogger } from "@egress-nat/program";
import { clientIn, clientInNetns, clientNames, netnsPath, withPodNetworks } from "./clients.ts";

type Registry = SteererOptions["registry"];
type View = SteererOptions["view"];
export type Gateway = ReturnType<View["gateways"]>[number];
type Pulse = View["pulse"];

/** The Egress. */
export const NAT = { namespace: "bench", name: "bench" };
const SPEC = {
  ...{ destinations: ["0.0.0.0/0", "::/0"], excludedDestinations: [], originatingOnly: true },
  fouSourcePortAuto: false,
  gatewaySelection: "Agent",
  sessionAffinity: "None",
} as const;

/** A gateway that is as it should be. */
export function gatewayAt(number: number): Gateway {
  return {
    ...{ name: `gateway-${number}`, addresses: [`10.244.2.${number}`, `fd00:244:2::${number}`] },
    ...{ ready: true, serving: true, terminating: false },
  };
}

/** @param isChanged whether that took anything */
type OnFollowed = (netns: string, config: ClientConfig, isChanged: boolean) => void;

/** Clients of one Egress, and the part of a node agent that leads their flows to its gateways. */
export class SteeredClients {
  readonly #names: readonly string[];
  readonly #records: readonly NonNullable<ReturnType<Registry["get"]>>[];
  readonly #gateways: readonly Gateway[];
  readonly #pulse: Pulse;
  readonly #onFollowed: OnFollowed;
  readonly #failed = Promise.withResolvers<never>();
  readonly #known = new Map<string, KnownClient>();
  readonly #steerer: Steerer;

  /**
   * @param pulse what is heard of an address of a gateway
   * @param onFollowed is told of each client whose flows follow another configuration by now
   */
  constructor(count: number, gateways: readonly Gateway[], pulse: Pulse, onFollowed: OnFollowed) {
    this.#names = clientNames(count);
    this.#records = this.#names.map((name) => ({
      ...{ network: "pods", containerId: name, netns: netnsPath(name), ifname: "eth0", addresses: [] },
      ...{ pod: { namespace: "bench", name, uid: name }, addedAt: "2026-01-01T00:00:00.000Z" },
      egresses: [{ ...NAT, ...SPEC }],
    }));
    this.#gateways = gateways;
    this.#pulse = pulse;
    this.#onFollowed = onFollowed;
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
      reapplier: { reapply: () => undefined, expectChanges: () => undefined },
      logger: createLogger({ name: "bench", level: "warn" }),
    });
  }

  /** Makes the network namespaces of the clients and steers them while `work` goes on. It fails where one cannot be steered. */
  async during(work: () => Promise<void>): Promise<void> {
    const ended = new AbortController();
    const running = this.#steerer.run(ended.signal);
    await withPodNetworks(this.#names, () => Promise.race([work(), this.#failed.promise]));
    ended.abort();
    await running;
  }

  /** Has all follow the gateways as they are now. */
  steer(): void {
    this.#steerer.steer(this.#records);
  }

  /** Asks the kernel at an address of a gateway through the tunnel of one client. */
  probe(address: string): Promise<boolean | undefined> {
    const [name = ""] = this.#names;
    const known = this.#known.get(netnsPath(name));
    if (known === undefined) return Promise.resolve(undefined);
    return clientIn(name).probeGateway(known, address);
  }

  /** Conntrack marks of the flows that a gateway has from one client, by its addresses. */
  marksTo({ addresses }: Pick<Gateway, "addresses">): number[] {
    const known = this.#known.get(netnsPath(this.#names[0] ?? ""));
    return addresses.flatMap((address) => known?.markTo(address) ?? []);
  }

  get #view(): View {
    return {
      egress: () => ({ metadata: NAT, spec: SPEC, status: { serviceIPs: ["10.96.0.10", "fd00:96::10"] } }),
      gateways: () => this.#gateways,
      pulse: this.#pulse,
      vanishedGateways: () => [],
      knowsGateways: () => true,
      hasEgressIn: () => true,
      place: { nodeName: "node", zone: undefined },
      clusterRanges: ["10.244.0.0/16", "10.96.0.0/16", "fd00:244::/48", "fd00:96::/112"],
    } as unknown as View;
  }

  /** Makes it a client the first time. */
  async #steer(netns: string, config: ClientConfig): Promise<boolean> {
    const client = clientInNetns(netns);
    const before = this.#known.get(netns);
    const after =
      before === undefined ? (await client.repair(config)).known : await client.steer(config, before);
    if (after === undefined) throw new Error(`nothing was done in ${netns}`);
    this.#known.set(netns, after);
    const isChanged = after !== before;
    this.#onFollowed(netns, config, isChanged);
    return isChanged;
  }
}
