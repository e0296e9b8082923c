import { expect, test } from "vitest";
import { parseNetworkState } from "../iproute/parse.ts";
import { planGateway } from "./plan.ts";
import { type GatewayState, gatewayFacts } from "./state.ts";
import { checkSysctls } from "./sysctls.ts";

const uplink = {
  ifname: "eth0",
  flags: ["UP"],
  mtu: 1500,
  group: "0",
  addr_info: [{ family: "inet", local: "10.1.0.4", prefixlen: 24, scope: "0" }],
};
const defaultRoute = { dst: "default", gateway: "10.1.0.1", dev: "eth0", protocol: "3" };
const config = { port: 5555, sourcePortAuto: false, destinations: ["0.0.0.0/0"], excluded: [] };

/** What is read of a namespace with some rules (`ip -N -json rule`), and src_valid_mark as it is said to be. */
function namespaceWith(srcValidMark: string, ...rules: readonly object[]): Omit<GatewayState, "filter"> {
  const outputs = [[uplink], [defaultRoute], [], rules].map((output) => JSON.stringify(output));
  const sysctls = [
    ["net/ipv4/ip_forward", "1"],
    ["net/ipv4/conf/all/rp_filter", "2"],
    ["net/ipv4/conf/all/src_valid_mark", srcValidMark],
  ] as const;
  return {
    ...parseNetworkState([outputs.join("\n"), ""]),
    sysctls: new Map(sysctls),
  };
}

function plannedRules(state: ReturnType<typeof namespaceWith>): number[] {
  const facts = gatewayFacts(state);
  checkSysctls(state, facts);
  return planGateway(config, facts).rules.map(({ preference }) => preference);
}

test("what the default route carries counts where the interface has more", () => {
  const outputs = [[uplink], [{ ...defaultRoute, metrics: [{ mtu: 1450 }] }], [], []];
  const network = parseNetworkState([outputs.map((output) => JSON.stringify(output)).join("\n"), ""]);
  expect(gatewayFacts({ ...network, sysctls: new Map() }).uplink.mtu).toBe(1450);
});

const BY_MARK = [2000, 2001, 2002, 2003, 2010, 2011, 2012, 2013];
const OPEN = [2000, 2001, 2002];

test("ways ask for the mark where the kernel asks with it for the way back", () => {
  expect(plannedRules(namespaceWith("1"))).toEqual(BY_MARK);
});

test("where an older program has prepared the namespace they do not, until its preparation is made up for", () => {
  const openWay = { priority: 2000, src: "all", iif: "eth0", table: "118", protocol: "30" };
  expect(plannedRules(namespaceWith("0"))).toEqual(OPEN);
  expect(plannedRules(namespaceWith("0", openWay))).toEqual(OPEN);
  expect(plannedRules(namespaceWith("1", openWay))).toEqual(BY_MARK);
});

test.each([
  { priority: 2003, src: "all", iif: "fou4", fwmark: "0x65670001", table: "254", protocol: "30" },
  { priority: 2013, src: "all", iif: "fou4", action: "6", protocol: "30" },
])("a way by mark does not open because the sysctl is lost: $priority", (rule) => {
  expect(() => plannedRules(namespaceWith("0", rule))).toThrow(
    "sysctl net.ipv4.conf.all.src_valid_mark is not 1",
  );
  // Somebody else's is nothing that the gateway could count on.
  expect(plannedRules(namespaceWith("0", { ...rule, protocol: "4" }))).toEqual(OPEN);
});
