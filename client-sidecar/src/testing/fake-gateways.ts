import { EgressClientSlice, SLICE_RESOURCE } from "@egress-nat/crds";
import { HeartbeatProber, HeartbeatResponder } from "@egress-nat/founat";
import { Cache, type Store, type Transport } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";

interface FakeGateway {
  readonly responder: HeartbeatResponder;
  readonly port: number;
  /** A gateway that is stuck answers with what it had applied when it got stuck. */
  stuck: Map<string, string> | undefined;
}

/**
 * Gateways that take in slices at once and answer real heartbeats, each under an address of its own that stands for a
 * port on loopback.
 */
export class FakeGateways {
  #slices: Store<EgressClientSlice> | undefined;
  readonly #gateways = new Map<string, FakeGateway>();
  readonly #prober = new HeartbeatProber();
  readonly #ended = new AbortController();

  /** Follows the slices of one namespace. */
  async start(transport: Transport, namespace: string, logger: Logger): Promise<void> {
    const parse = (raw: unknown) => EgressClientSlice.parse(raw);
    const slices = new Cache({ transport, resource: SLICE_RESOURCE, namespace, parse, logger });
    this.#slices = slices.store;
    void slices.run(this.#ended.signal);
    await slices.whenSynced();
  }

  /** @returns the port on loopback that the gateway's address stands for */
  async add(address: string): Promise<number> {
    const responder = new HeartbeatResponder({
      port: 0,
      host: "127.0.0.1",
      value: (uid) => (this.#gateways.get(address)?.stuck ?? this.#applied()).get(uid),
    });
    const port = await responder.listen();
    this.#gateways.set(address, { responder, port, stuck: undefined });
    return port;
  }

  /** From now on nobody answers there. */
  async remove(address: string): Promise<void> {
    await this.#gateways.get(address)?.responder.close();
    this.#gateways.delete(address);
  }

  /** From now on this gateway takes in nothing new; `false` undoes it. */
  setStuck(address: string, stuck: boolean): void {
    const gateway = this.#gateways.get(address);
    if (gateway !== undefined) gateway.stuck = stuck ? this.#applied() : undefined;
  }

  readonly probe: HeartbeatProber["probe"] = (address, _port, keys, options) => {
    // TCP port 9 is discard: nobody answers there.
    return this.#prober.probe("127.0.0.1", this.#gateways.get(address)?.port ?? 9, keys, options);
  };

  async close(): Promise<void> {
    this.#ended.abort();
    await Promise.all([...this.#gateways.values()].map(({ responder }) => responder.close()));
    await this.#prober.close();
  }

  #applied(): Map<string, string> {
    const slices = this.#slices?.list() ?? [];
    return new Map(slices.map(({ metadata }) => [metadata.uid, String(metadata.generation)]));
  }
}
