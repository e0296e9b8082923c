import { type NftTableState, parseTable } from "../backends/nft/state.ts";
import { FounatError } from "../error.ts";
import { type Addresses, FAMILIES } from "../family.ts";
import { givenAddresses, isAdvertised, isLearned, settledLines } from "../iproute/learned.ts";
import { MAIN_TABLE, type NetworkState, parseNetworkState, READ_NETWORK_STATE } from "../iproute/state.ts";
import { type Kernel, parseSysctls } from "../kernel/kernel.ts";
import type { Command } from "../kernel/step.ts";
import type { ClientConfig } from "./config.ts";
import { CLIENT_TABLE } from "./guard.ts";
import type { ClientFacts } from "./plan.ts";
import { familiesOf, relevantSysctls, sysctlsOfSome } from "./sysctls.ts";

/** What the kernel holds of one client. */
export interface ClientState extends NetworkState {
  readonly guard: NftTableState | undefined;
  readonly sysctls: ReadonlyMap<string, string>;
}

/** Fails if there is none. */
const LIST_GUARD: Command = {
  file: "nft",
  args: ["-j", "list", "table", "inet", CLIENT_TABLE],
  mayFail: true,
};

/**
 * Reads it all with one entry into the network namespace.
 *
 * @param config what sysctls are of interest for; none without
 */
export async function readClientState(kernel: Kernel, config?: ClientConfig): Promise<ClientState> {
  const [network, rules6, guard, sysctls] = await kernel.read([
    ...READ_NETWORK_STATE,
    LIST_GUARD,
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

/**
 * @throws FounatError `uplink-missing` when the interface is not there
 */
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
  const addresses: Addresses = Object.fromEntries(
    FAMILIES.flatMap((family) => {
      const first = given.find((candidate) => candidate.family === family);
      return first === undefined ? [] : [[family, first.address]];
    }),
  );
  return {
    uplink: { name: uplink, mtu: link.mtu, addresses },
    mainRoutes: state.routes
      .filter(({ table, destination }) => table === MAIN_TABLE && !destination.endsWith("/0"))
      .filter((route) => !isLearned(route, state))
      .map(({ destination }) => destination),
    forget: given.every(isAdvertised) ? [] : settledLines([link], state),
    needsAdvertisements: given.length > 0 && given.every(isAdvertised),
    families: familiesOf(state.sysctls),
  };
}
