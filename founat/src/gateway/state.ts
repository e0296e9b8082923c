import { firstOfEach } from "@egress-nat/addresses";
import type { Backend, FilterState } from "../backends/backend.ts";
import { FounatError } from "../error.ts";
import { isLinkName } from "../iproute/links.ts";
import { mtuBy } from "../iproute/mtu.ts";
import { parseNetworkState, READ_NETWORK_STATE } from "../iproute/parse.ts";
import { isDefault, type NetworkState } from "../iproute/state.ts";
import { type Kernel, parseSysctls } from "../kernel/kernel.ts";
import { canonicalAddress } from "../routing/cidr.ts";
import { type GatewayFacts, isMarkedWay } from "./plan.ts";
import { FORWARDING, SRC_VALID_MARK } from "./sysctls.ts";

/** What the kernel holds of the gateway. */
export interface GatewayState extends NetworkState {
  readonly filter: FilterState;
  readonly sysctls: ReadonlyMap<string, string>;
}

/** @param elements false leaves out which clients the packet filter knows, of which there are many */
export async function readGatewayState(
  kernel: Pick<Kernel, "read">,
  backend: Pick<Backend, "read">,
  { elements }: { readonly elements: boolean },
): Promise<GatewayState> {
  const [[network, rules6, sysctls], filter] = await Promise.all([
    kernel.read([...READ_NETWORK_STATE, { read: Object.keys(FORWARDING) }]),
    backend.read({ elements }),
  ]);
  return {
    ...parseNetworkState([network ?? "", rules6 ?? ""]),
    filter,
    sysctls: parseSysctls(sysctls ?? ""),
  };
}

/**
 * The uplink is where the default route leads.
 *
 * @param named the gateway's own addresses; others, which anybody on the link may have made it take, are not used
 * @throws FounatError `uplink-missing` when there is no such interface, or it has no address
 */
export function gatewayFacts(state: Omit<GatewayState, "filter">, named?: readonly string[]): GatewayFacts {
  const route = state.routes.find(
    (each) => isDefault(each) && each.device !== undefined && !isLinkName(each.device),
  );
  const link = state.links.find(({ name }) => name === route?.device);
  const own = named?.map(canonicalAddress);
  const present = (link?.addresses ?? []).map(({ address }) => address);
  const addresses = firstOfEach(present.filter((address) => own?.includes(address) ?? true));
  if (link === undefined || Object.keys(addresses).length === 0) {
    const which = own === undefined ? "no address" : `none of the addresses ${own.join(", ")}`;
    throw new FounatError(
      "uplink-missing",
      `the gateway's network namespace has no default route, or ${which} on the interface that it leads to`,
      { retryable: true },
    );
  }
  return {
    uplink: { name: link.name, mtu: mtuBy(link, state.routes), addresses },
    // A sysctl that was lost opens no way that was closed.
    marksWayBack: state.sysctls.get(SRC_VALID_MARK) === "1" || state.rules.some(isMarkedWay),
  };
}
