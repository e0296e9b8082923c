import { isIP } from "node:net";
import { type NftTableState, parseTable } from "../backends/nft/state.ts";
import { FounatError } from "../error.ts";
import { type Addresses, FAMILIES } from "../family.ts";
import { isLinkName } from "../iproute/links.ts";
import { MAIN_TABLE, type NetworkState, parseNetworkState, READ_NETWORK_STATE } from "../iproute/state.ts";
import { type Kernel, parseSysctls } from "../kernel/kernel.ts";
import { canonicalAddress } from "../routing/cidr.ts";
import type { Peer, Peers } from "./peers.ts";
import { type GatewayFacts, isMarkedWay } from "./plan.ts";
import { GATEWAY_TABLE } from "./table.ts";

/** What the kernel holds of the gateway. */
export interface GatewayState extends NetworkState {
  readonly table: NftTableState | undefined;
  readonly sysctls: ReadonlyMap<string, string>;
  /** Whether the kernel has flowtables. */
  readonly flowtables: boolean;
}

/** Nothing of it stays: nft only asks the kernel whether it would take it. */
const FLOWTABLE_TRIAL = {
  file: "nft",
  args: ["--check", "-f", "-"],
  input: `table inet egress_nat_trial {
  flowtable trial { hook ingress priority filter; devices = { "lo" }; }
  chain trial { flow add @trial; }
}
`,
};

const SRC_VALID_MARK = "net/ipv4/conf/all/src_valid_mark";
const SYSCTLS = [
  "net/ipv4/ip_forward",
  "net/ipv6/conf/all/forwarding",
  "net/ipv4/conf/all/rp_filter",
  SRC_VALID_MARK,
];

/** @param elements false leaves out those of sets, of which there are as many as clients */
export async function readGatewayState(
  kernel: Pick<Kernel, "read">,
  { elements } = { elements: true },
): Promise<GatewayState> {
  const terse = elements ? [] : ["-t"];
  const [[network, rules6, table, sysctls], flowtables] = await Promise.all([
    kernel.read([
      ...READ_NETWORK_STATE,
      { file: "nft", args: [...terse, "-j", "list", "table", "inet", GATEWAY_TABLE], mayFail: true },
      { read: SYSCTLS },
    ]),
    kernel.read([FLOWTABLE_TRIAL]).then(
      () => true,
      () => false,
    ),
  ]);
  return {
    ...parseNetworkState([network ?? "", rules6 ?? ""]),
    table: parseTable(table ?? ""),
    sysctls: parseSysctls(sysctls ?? ""),
    flowtables,
  };
}

/** The clients that the kernel holds: an element's comment is the client's id. */
export function peersOf(table: NftTableState | undefined): Peers {
  const peers = new Map<string, Peer>();
  for (const name of ["clients4", "clients6"]) {
    for (const { text, comment } of table?.sets.get(name)?.elements ?? []) {
      const [address = "", mark] = text.split(" : ");
      // What is no address is no client's, for instance `*`; the comparison with the kernel takes it away.
      if (isIP(address) !== 0) peers.set(address, { id: comment ?? "", mark: Number(mark) });
    }
  }
  return peers;
}

/**
 * The uplink is where the default route leads.
 *
 * @param named the gateway's own addresses; others, which anybody on the link may have made it take, are not used
 * @throws FounatError `uplink-missing` when there is no such interface, or it has no address
 */
export function gatewayFacts(state: GatewayState, named?: readonly string[]): GatewayFacts {
  const route = state.routes.find(
    ({ table, destination, device }) =>
      table === MAIN_TABLE && destination.endsWith("/0") && device !== undefined && !isLinkName(device),
  );
  const link = state.links.find(({ name }) => name === route?.device);
  const own = named?.map(canonicalAddress);
  const addresses: Addresses = Object.fromEntries(
    FAMILIES.flatMap((family) => {
      const first = link?.addresses.find(
        (candidate) =>
          candidate.family === family && (own?.includes(canonicalAddress(candidate.address)) ?? true),
      );
      return first === undefined ? [] : [[family, first.address]];
    }),
  );
  if (link === undefined || Object.keys(addresses).length === 0) {
    const which = own === undefined ? "no address" : `none of the addresses ${own.join(", ")}`;
    throw new FounatError(
      "uplink-missing",
      `the gateway's network namespace has no default route, or ${which} on the interface that it leads to`,
      { retryable: true },
    );
  }
  return {
    uplink: { name: link.name, mtu: link.mtu, addresses },
    flowtables: state.flowtables,
    // A sysctl that was lost opens no way that was closed.
    marksWayBack: state.sysctls.get(SRC_VALID_MARK) === "1" || state.rules.some(isMarkedWay),
  };
}

/**
 * @throws FounatError `forwarding-disabled` or `strict-reverse-path-filter` when the namespace is not prepared
 */
export function checkSysctls({ sysctls }: GatewayState, { uplink, marksWayBack }: GatewayFacts): void {
  const remedy =
    "have it set in the gateway's network namespace: a node agent does so for pods that it knows as gateways " +
    "(prepareGatewayNetns), without one an init container must";
  const forwarding = [
    ...(uplink.addresses.ipv4 === undefined ? [] : ["net/ipv4/ip_forward"]),
    ...(uplink.addresses.ipv6 === undefined ? [] : ["net/ipv6/conf/all/forwarding"]),
  ];
  const missing = forwarding.filter((path) => sysctls.get(path) !== "1");
  if (missing.length > 0) {
    const names = missing.map((path) => path.replaceAll("/", ".")).join(" and ");
    throw new FounatError(
      "forwarding-disabled",
      `sysctl ${names} is not 1: the gateway cannot forward; ${remedy}`,
      {
        retryable: true,
      },
    );
  }
  if (sysctls.get("net/ipv4/conf/all/rp_filter") !== "2") {
    throw new FounatError(
      "strict-reverse-path-filter",
      `sysctl net.ipv4.conf.all.rp_filter is not 2: packets of clients may be dropped; ${remedy}`,
      { retryable: true },
    );
  }
  if (uplink.addresses.ipv4 !== undefined && marksWayBack && sysctls.get(SRC_VALID_MARK) !== "1") {
    throw new FounatError(
      "strict-reverse-path-filter",
      `sysctl net.ipv4.conf.all.src_valid_mark is not 1: IPv4 packets of clients are dropped; ${remedy}`,
      { retryable: true },
    );
  }
}
