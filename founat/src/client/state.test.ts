import { expect, test } from "vitest";
import { parseNetworkState } from "../iproute/parse.ts";
import { clientFacts } from "./state.ts";

// As `ip -N -json -details` prints them.
const LEASED = { family: "inet", scope: "0", local: "10.1.0.2", prefixlen: 24, dynamic: true };
const ADVERTISED = { family: "inet6", scope: "0", local: "2001:db8::2", prefixlen: 64, dynamic: true };
const DEFAULT_ROUTE = {
  ...{ type: "1", dst: "default", gateway: "fe80::1", dev: "eth0" },
  ...{ protocol: "9", metric: 1024, pref: "medium" },
};

function facts(address: object, ...routes: readonly object[]) {
  const links = [{ ifname: "eth0", mtu: 1500, group: "0", addr_info: [address] }];
  const network = parseNetworkState([`${JSON.stringify(links)}\n${JSON.stringify(routes)}\n`]);
  return clientFacts({ ...network, sysctls: new Map() }, "eth0");
}

test("an IPv4 address with a lifetime, that of a lease (DHCP), is the client's", () => {
  expect(facts(LEASED)).toMatchObject({
    uplink: { addresses: { ipv4: "10.1.0.2" } },
    forget: [],
    needsAdvertisements: false,
  });
});

test("what the default routes carry counts where the interface has more", () => {
  const of = (route: object, mtu: number) => ({ ...route, metrics: [{ advmss: 1300, mtu }] });
  expect(facts(LEASED, DEFAULT_ROUTE).uplink.mtu).toBe(1500);
  expect(facts(LEASED, of(DEFAULT_ROUTE, 1450)).uplink.mtu).toBe(1450);
  expect(facts(LEASED, of(DEFAULT_ROUTE, 9000)).uplink.mtu).toBe(1500);
  const others = [{ dev: "other" }, { table: "118" }, { dst: "2001:db8::/64" }];
  for (const other of others) {
    expect(facts(LEASED, of({ ...DEFAULT_ROUTE, ...other }, 1450)).uplink.mtu).toBe(1500);
  }
});

test("a client goes on to listen where the network gives no address but by advertisements, and forgets nothing", () => {
  const prefix = { ...DEFAULT_ROUTE, dst: "2001:db8::/64", gateway: undefined, protocol: "2", metric: 256 };
  expect(facts(ADVERTISED, DEFAULT_ROUTE, prefix)).toMatchObject({ forget: [], needsAdvertisements: true });
});
