import { type Addresses, FAMILIES, type Family } from "../family.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { ADDRESS_BITS } from "../routing/cidr.ts";
import { probeAddress } from "../routing/probe-addresses.ts";
import type { ClientConfig } from "./config.ts";
import { planClient } from "./plan.ts";

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

interface Probe {
  readonly egress: string;
  readonly family: Family;
  readonly address: string;
}

/** Sends echo requests through each tunnel until one is answered. */
export async function probeTunnels(
  kernel: Pick<Kernel, "run">,
  config: ClientConfig,
  { addresses, egresses, timeoutMs }: TunnelProbeOptions,
): Promise<readonly SilentTunnel[]> {
  const seconds = Math.ceil(timeoutMs / 1000);
  const probes = probesOf(config, addresses).filter(({ egress }) => egresses?.includes(egress) ?? true);
  const results = await Promise.all(probes.map((probe) => send(kernel, probe, seconds)));
  return results.filter((result) => result !== undefined);
}

// Where the plan has a route for them: not where another Egress carries all that this one could.
function probesOf(config: ClientConfig, addresses: Addresses): Probe[] {
  const uplink = { name: config.uplink, mtu: 0, addresses };
  const { routes } = planClient(config, {
    uplink,
    mainRoutes: [],
    forget: [],
    needsAdvertisements: false,
    families: FAMILIES,
  });
  const destinations = new Set(routes.map(({ destination }) => destination));
  return config.egresses.flatMap(({ name }, index) =>
    FAMILIES.flatMap((family): Probe[] => {
      const address = probeAddress(family, index);
      const isRouted = destinations.has(`${address}/${ADDRESS_BITS[family]}`);
      return address !== undefined && isRouted ? [{ egress: name, family, address }] : [];
    }),
  );
}

async function send(
  kernel: Pick<Kernel, "run">,
  { egress, family, address }: Probe,
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
