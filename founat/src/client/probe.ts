import { type Addresses, FAMILIES, type Family } from "@egress-nat/addresses";
import type { Kernel } from "../kernel/kernel.ts";
import type { ClientConfig } from "./config.ts";
import { planClient } from "./plan.ts";
import type { Probe } from "./routes.ts";

export interface TunnelProbeOptions {
  /** The client's own address of each family: families that it lacks have no tunnel. */
  readonly addresses: Addresses;
  /** Names of the Egresses whose gateways are asked; by default all. */
  readonly egresses?: readonly string[];
  /** How long to wait for answers, in whole seconds at least. */
  readonly timeoutMs: number;
}

/** A tunnel through which no answer came. */
export interface SilentTunnel {
  /** {@link ClientEgress.name} */
  readonly egress: string;
  readonly family: Family;
  /** For people. */
  readonly reason: string;
}

/** Sends echo requests through each tunnel until one is answered. */
export async function probeTunnels(
  kernel: Pick<Kernel, "run">,
  config: ClientConfig,
  { addresses, egresses, timeoutMs }: TunnelProbeOptions,
): Promise<readonly SilentTunnel[]> {
  const seconds = Math.ceil(timeoutMs / 1000);
  // The namespace is not looked at: what else is in it decides about no tunnel.
  const { probes } = planClient(config, {
    uplink: { name: config.uplink, mtu: 0, addresses },
    mainRoutes: [],
    forget: [],
    needsAdvertisements: false,
    families: FAMILIES,
  });
  const wanted = probes.filter(({ egress }) => egresses?.includes(egress.name) ?? true);
  const results = await Promise.all(wanted.map((probe) => send(kernel, probe, seconds)));
  return results.filter((result) => result !== undefined);
}

async function send(
  kernel: Pick<Kernel, "run">,
  { egress: { name: egress }, family, address }: Probe,
  seconds: number,
): Promise<SilentTunnel | undefined> {
  const args = ["-n", "-q", "-c", "1", "-i", "0.2", "-w", String(seconds), address];
  const [output = ""] = await kernel.run([{ file: "ping", args, mayFail: true }]);
  if (/ [1-9]\d* received/.test(output)) return undefined;
  return {
    egress,
    family,
    reason: output === "" ? "ping could not be run" : `no answer within ${seconds} s`,
  };
}
