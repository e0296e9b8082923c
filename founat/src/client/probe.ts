import { type Addresses, FAMILIES, type Family, familyOf } from "@egress-nat/addresses";
import type { Kernel } from "../kernel/kernel.ts";
import { probeAddress } from "../routing/probe-addresses.ts";
import type { ClientConfig } from "./config.ts";
import type { KnownClient } from "./known.ts";
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

/** How long the last echo request to a gateway is waited for, and the time between two, in seconds. */
const ECHO_SECONDS = 0.2;

/**
 * Sends echo requests to one gateway by the tunnel that flows take which it has, whoever gets new ones.
 *
 * @param address the gateway's
 * @returns whether one was answered; undefined where there is no such tunnel
 */
export async function probeGateway(
  kernel: Pick<Kernel, "run">,
  known: KnownClient,
  address: string,
): Promise<boolean | undefined> {
  const mark = known.markTo(address);
  const target = probeAddress(familyOf(address), 0);
  if (mark === undefined || target === undefined) return undefined;
  return ping(kernel, `-m ${mark} -c 2 -i ${ECHO_SECONDS} -W ${ECHO_SECONDS} ${target}`);
}

/**
 * @param words options of ping(8), and whom to ask
 * @returns whether there was an answer; undefined where it could not be run, which says nothing
 */
async function ping(kernel: Pick<Kernel, "run">, words: string): Promise<boolean | undefined> {
  const args = ["-n", "-q", ...words.split(" ")];
  const [output = ""] = await kernel.run([{ file: "ping", args, mayFail: true }]);
  return output === "" ? undefined : / [1-9]\d* received/.test(output);
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
    pins: new Map(),
    ways: [],
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
  const answered = await ping(kernel, `-c 1 -i 0.2 -w ${seconds} ${address}`);
  if (answered) return undefined;
  const reason = answered === undefined ? "ping could not be run" : `no answer within ${seconds} s`;
  return { egress, family, reason };
}
