import { isDeepStrictEqual } from "node:util";
import type { ClientConfig, SilentTunnel, TunnelProbeOptions } from "@egress-nat/founat";
import type { PodNetworks } from "../agent/pod-networks.ts";

/** Network namespaces that only remember what they were told to be. */
export class FakeNetworks implements PodNetworks {
  readonly applied = new Map<string, ClientConfig>();
  readonly gateways = new Set<string>();
  readonly gone = new Set<string>();
  /** What the next {@link apply} fails with. */
  failure: Error | undefined;
  /** Tunnels through which no probe comes back. */
  silent: readonly SilentTunnel[] = [];
  readonly probes: TunnelProbeOptions[] = [];

  async apply(netns: string, config: ClientConfig): Promise<{ readonly changed: boolean }> {
    if (this.failure !== undefined) throw this.failure;
    const changed = !isDeepStrictEqual(this.applied.get(netns), config);
    this.applied.set(netns, config);
    return { changed };
  }

  async check(netns: string, config: ClientConfig): Promise<readonly string[]> {
    return isDeepStrictEqual(this.applied.get(netns), config) ? [] : ["route 192.0.2.0/24 is missing"];
  }

  async probe(
    _netns: string,
    _config: ClientConfig,
    options: TunnelProbeOptions,
  ): Promise<readonly SilentTunnel[]> {
    this.probes.push(options);
    return this.silent;
  }

  async remove(netns: string): Promise<void> {
    this.applied.delete(netns);
  }

  async prepareGateway(netns: string): Promise<void> {
    this.gateways.add(netns);
  }

  async exists(netns: string): Promise<boolean> {
    return !this.gone.has(netns);
  }
}
