import { type Addresses, FAMILIES, type Family, familyOf } from "@egress-nat/addresses";
import { linkName } from "../iproute/links.ts";
import { readNetworkState } from "../iproute/parse.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { probeAddress } from "../routing/probe-addresses.ts";
import type { ClientConfig } from "./config.ts";
import { markOf, markOfReplies } from "./mark.ts";
import { pinKey, pinNumbers } from "./pins.ts";
import { planClient } from "./plan.ts";
import type { Probe } from "./routes.ts";
import { gatewaysOf } from "./tunnels.ts";

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
  kernel: Pick<Kernel, "run" | "read">,
  { egresses, markMask }: ClientConfig,
  address: string,
): Promise<boolean | undefined> {
  const family = familyOf(address);
  const egress = egresses.find((each) => gatewaysOf(family, each).includes(address));
  const target = probeAddress(family, 0);
  if (egress === undefined || target === undefined) return undefined;
  const numbers = pinNumbers(await readNetworkState(kernel));
  const link = linkName({ family, sourcePortAuto: egress.sourcePortAuto, remote: address });
  const number = numbers.get(pinKey(link));
  if (number === undefined) return undefined;
  const { value } = markOf(number, markOfReplies(markMask).mask);
  return ping(kernel, `-m ${value} -c 2 -i ${ECHO_SECONDS} -W ${ECHO_SECONDS} ${target}`);
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
