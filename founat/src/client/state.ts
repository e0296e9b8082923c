import { firstOfEach } from "@egress-nat/addresses";
import { type GuardState, READ_GUARD } from "../backends/nft/guard.ts";
import { parseTable } from "../backends/nft/state.ts";
import { FounatError } from "../error.ts";
import { givenAddresses, isAdvertised, isLearned, settledLines } from "../iproute/learned.ts";
import { mtuBy } from "../iproute/mtu.ts";
import { parseNetworkState, READ_NETWORK_STATE } from "../iproute/parse.ts";
import { MAIN_TABLE, type NetworkState } from "../iproute/state.ts";
import { type Kernel, parseSysctls } from "../kernel/kernel.ts";
import type { ClientConfig } from "./config.ts";
import { pinNumbers } from "./pins.ts";
import type { ClientFacts } from "./plan.ts";
import { waysThere } from "./routes.ts";
import { familiesOf, relevantSysctls, sysctlsOfSome } from "./sysctls.ts";

/** What the kernel holds of one client. */
export interface ClientState extends NetworkState {
  readonly guard: GuardState;
  readonly sysctls: ReadonlyMap<string, string>;
}

/**
 * Reads it all with one entry into the network namespace.
 *
 * @param config what sysctls are of interest for; none without
 */
export async function readClientState(kernel: Kernel, config?: ClientConfig): Promise<ClientState> {
  const [network, rules6, guard, sysctls] = await kernel.read([
    ...READ_NETWORK_STATE,
    READ_GUARD,
    ...(config === undefined ? [] : [{ read: relevantSysctls(config) }]),
  ]);
  return {
    ...parseNetworkState([network ?? "", rules6 ?? ""]),
    guard: parseTable(guard ?? ""),
    sysctls: parseSysctls(sysctls ?? ""),
  };
}

/**
 * Reads no more than the set-up of a client depends on, with one process: the network, and which sysctls there are, but
 * not their values.
 */
export async function readNetwork(kernel: Kernel, uplink: string): Promise<Omit<ClientState, "guard">> {
  const [readLinksAndRoutes] = READ_NETWORK_STATE;
  const [network, sysctls] = await kernel.read([
    ...(readLinksAndRoutes === undefined ? [] : [readLinksAndRoutes]),
    { read: sysctlsOfSome(uplink), presenceOnly: true },
  ]);
  return { ...parseNetworkState([network ?? ""]), sysctls: parseSysctls(sysctls ?? "") };
}

/** @throws FounatError `uplink-missing` when the interface is not there */
export function clientFacts(state: Omit<ClientState, "guard">, uplink: string): ClientFacts {
  const link = state.links.find(({ name }) => name === uplink);
  if (link === undefined) {
    throw new FounatError(
      "uplink-missing",
      `there is no interface ${uplink} in the client's network namespace; attach it before the client is set up`,
      { retryable: true },
    );
  }
  const given = givenAddresses(link);
  return {
    uplink: {
      name: uplink,
      mtu: mtuBy(link, state.routes),
      addresses: firstOfEach(given.map(({ address }) => address)),
    },
    mainRoutes: state.routes
      .filter(({ table, destination }) => table === MAIN_TABLE && !destination.endsWith("/0"))
      .filter((route) => !isLearned(route, state))
      .map(({ destination }) => destination),
    forget: given.every(isAdvertised) ? [] : settledLines([link], state),
    needsAdvertisements: given.length > 0 && given.every(isAdvertised),
    families: familiesOf(state.sysctls),
    pins: pinNumbers(state),
    ways: waysThere(state),
  };
}
