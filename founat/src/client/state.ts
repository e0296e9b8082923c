import { FounatError } from "../error.ts";
import { type Addresses, FAMILIES } from "../family.ts";
import { MAIN_TABLE, type NetworkState, parseNetworkState, READ_NETWORK_STATE } from "../iproute/state.ts";
import { type Kernel, parseSysctls } from "../kernel.ts";
import { type NftTableState, parseTable } from "../nft/state.ts";
import type { ClientConfig } from "./config.ts";
import { CLIENT_TABLE } from "./guard.ts";
import type { ClientFacts } from "./plan.ts";
import { familiesOf, relevantSysctls } from "./sysctls.ts";

/** What the kernel holds of one client. */
export interface ClientState extends NetworkState {
  readonly guard: NftTableState | undefined;
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
    { file: "nft", args: ["-j", "list", "table", "inet", CLIENT_TABLE], mayFail: true },
    ...(config === undefined ? [] : [{ read: relevantSysctls(config) }]),
  ]);
  return {
    ...parseNetworkState([network ?? "", rules6 ?? ""]),
    guard: parseTable(guard ?? ""),
    sysctls: parseSysctls(sysctls ?? ""),
  };
}

/**
 * @throws FounatError `uplink-missing` when the interface is not there
 */
export function clientFacts(state: ClientState, uplink: string): ClientFacts {
  const link = state.links.find(({ name }) => name === uplink);
  if (link === undefined) {
    throw new FounatError(
      "uplink-missing",
      `there is no interface ${uplink} in the client's network namespace; attach it before the client is set up`,
      { retryable: true },
    );
  }
  const addresses: Addresses = Object.fromEntries(
    FAMILIES.flatMap((family) => {
      const first = link.addresses.find((candidate) => candidate.family === family);
      return first === undefined ? [] : [[family, first.address]];
    }),
  );
  return {
    uplink: { name: uplink, mtu: link.mtu, addresses },
    mainRoutes: state.routes
      .filter(({ table, destination }) => table === MAIN_TABLE && !destination.endsWith("/0"))
      .map(({ destination }) => destination),
    families: familiesOf(state.sysctls),
  };
}
