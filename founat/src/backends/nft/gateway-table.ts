import { FAMILIES, type Family, formatRange, type Range } from "@egress-nat/addresses";
import { DROP_REASONS, type GatewayPolicy } from "../../gateway/policy.ts";
import { VERSION } from "../spelling.ts";
import { FAST_PATH, gatewayChains } from "./gateway-chains.ts";
import type { NftSet, NftTable } from "./table.ts";

export const GATEWAY_TABLE = "egress_nat_gateway";

/** The sets that hold clients: they outlive every other change of the table. */
export const CLIENT_SETS: ReadonlySet<string> = new Set(["clients4", "clients6", "inner4", "inner6"]);

/**
 * The gateway's packet filter: opt-in is enforced here, whatever a client's network namespace says.
 *
 * @param fastPath whether the kernel has flowtables
 */
export function gatewayTable(policy: GatewayPolicy, fastPath: boolean): NftTable {
  const { uplink, allowed, tunnels } = policy;
  return {
    name: GATEWAY_TABLE,
    comment: "egress NAT gateway: clients only, as themselves only, to the Egress's destinations only",
    sets: FAMILIES.flatMap((family) => sets(family, allowed[family])),
    counters: DROP_REASONS,
    flowtables: fastPath
      ? [
          {
            name: FAST_PATH,
            comment:
              "Flows that were let through both ways. What comes from a tunnel has passed its ingress chain.",
            devices: [uplink, ...tunnels.map(({ name }) => name)],
          },
        ]
      : [],
    chains: gatewayChains(policy, fastPath),
  };
}

function sets(family: Family, destinations: readonly Range[]): NftSet[] {
  const [address, v] = [`${family}_addr`, VERSION[family]];
  const clients = { type: `${address} : mark`, comment: "outer source : mark of the client", elements: [] };
  const inner = { type: `${address} . mark`, comment: "inner source . mark of the client", elements: [] };
  const elements = destinations.map((range) => formatRange(family, range));
  return [
    { ...clients, name: `clients${v}`, kind: "map" },
    { ...inner, name: `inner${v}`, kind: "set" },
    {
      ...{ name: `destinations${v}`, kind: "set", type: address, interval: true },
      ...{ comment: "what clients may reach", elements },
    },
  ];
}
