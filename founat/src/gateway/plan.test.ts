import { expect, test } from "vitest";
import { renderSteps } from "../testing/golden.ts";
import { gatewayChanges } from "./changes.ts";
import { type GatewayFacts, planGateway } from "./plan.ts";

const facts: GatewayFacts = {
  uplink: { name: "eth0", mtu: 1500, addresses: { ipv4: "10.244.2.9", ipv6: "fd00:244:2::9" } },
  flowtables: true,
  marksWayBack: true,
};
const NOTHING = {
  links: [],
  routes: [],
  rules: [],
  fouPorts: [],
  table: undefined,
  sysctls: new Map(),
  flowtables: true,
};
const config = {
  port: 5555,
  sourcePortAuto: false,
  destinations: ["0.0.0.0/0", "::/0"],
  excluded: [
    "10.96.0.0/16",
    "10.244.0.0/16",
    "100.64.0.0/10",
    "fd00:96::/112",
    "fd00:244::/48",
    "198.51.100.0/24",
  ],
};

test.each([
  ["everything, dual stack", config, facts],
  [
    "a narrow destination, IPv4, automatic source ports, no flowtables",
    { ...config, destinations: ["10.0.0.0/8"], sourcePortAuto: true },
    { uplink: { ...facts.uplink, addresses: { ipv4: "10.244.2.9" } }, flowtables: false, marksWayBack: true },
  ],
])("the commands of a gateway to %s", async (name, config, facts) => {
  const file = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  await expect(renderSteps(gatewayChanges(planGateway(config, facts), NOTHING).steps)).toMatchFileSnapshot(
    `testdata/${file}.txt`,
  );
});

test("lo comes up before a route leads there", () => {
  const lo = { name: "lo", up: false, mtu: 65_536, group: 0, hasIpv4Address: true, addresses: [] };
  const plan = planGateway(config, facts);
  const { differences, steps } = gatewayChanges(plan, { ...NOTHING, links: [lo] });
  expect(differences).toContainEqual({ object: "link", text: "not done: ip link set lo up" });
  expect(renderSteps(steps)).toMatch(/link set lo up\n.*route replace local .*route replace local /s);
  const whole = gatewayChanges(plan, { ...NOTHING, links: [{ ...lo, up: true }] });
  expect(renderSteps(whole.steps)).not.toContain("link set lo");
});

test("where the way back is not asked for by mark, no way of IPv4 asks for one", () => {
  const { rules } = planGateway(config, { ...facts, marksWayBack: false });
  const marked = rules.filter(({ selector }) => selector.includes("fwmark"));
  expect(new Set(marked.map(({ family }) => family))).toEqual(new Set(["ipv6"]));
  expect(rules).toContainEqual({
    family: "ipv4",
    preference: 2000,
    selector: "iif eth0",
    action: "lookup 118",
  });
});
