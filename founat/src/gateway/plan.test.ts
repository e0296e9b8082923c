import { expect, test } from "vitest";
import { IptablesBackend } from "../backends/iptables/backend.ts";
import { tableChanges } from "../backends/nft/gateway-changes.ts";
import { gatewayTable } from "../backends/nft/gateway-table.ts";
import type { Changes } from "../difference.ts";
import { linkChanges } from "../iproute/links.ts";
import type { NetworkState } from "../iproute/state.ts";
import { OF_IPV6 } from "../kernel/ipv6.ts";
import { renderSteps } from "../testing/golden.ts";
import { gatewayChanges } from "./changes.ts";
import { type GatewayFacts, type GatewayPlan, planGateway } from "./plan.ts";

const facts: GatewayFacts = {
  uplink: { name: "eth0", mtu: 1500, addresses: { ipv4: "10.244.2.9", ipv6: "fd00:244:2::9" } },
  marksWayBack: true,
};
const NOTHING = {
  links: [],
  routes: [],
  rules: [],
  fouPorts: [],
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

/** What makes a gateway of a namespace that has no packet filter. */
function changes(plan: GatewayPlan, state: NetworkState, fastPath = true): Changes {
  const links = linkChanges(plan, state);
  const table = gatewayTable(plan.policy, fastPath);
  return gatewayChanges(plan, state, links, tableChanges(table, undefined, links.replaced, {}, new Map()));
}

test.each([
  ["everything, dual stack", config, facts, true],
  [
    "a narrow destination, IPv4, automatic source ports, no flowtables",
    { ...config, destinations: ["10.0.0.0/8"], sourcePortAuto: true },
    { ...facts, uplink: { ...facts.uplink, addresses: { ipv4: "10.244.2.9" } } },
    false,
  ],
])("the commands of a gateway to %s", async (name, config, facts, fastPath) => {
  const file = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  await expect(renderSteps(changes(planGateway(config, facts), NOTHING, fastPath).steps)).toMatchFileSnapshot(
    `testdata/${file}.txt`,
  );
});

test("the commands of a gateway to everything, dual stack, with iptables", async () => {
  const plan = planGateway(config, facts);
  const backend = new IptablesBackend({
    run: async () => [],
    // The kernel holds nothing, and has rules as it was told them.
    read: async (steps) =>
      steps.map((step) => ("file" in step ? (step.input ?? "") : "read" in step ? `${OF_IPV6}:\n` : "")),
  });
  const links = linkChanges(plan, NOTHING);
  const present = new Set<string>();
  const there = { present, replaced: links.replaced };
  const filter = await (await backend.read()).changes(plan.policy, there, new Map());
  const { steps } = gatewayChanges(plan, NOTHING, links, filter);
  await expect(renderSteps(steps)).toMatchFileSnapshot("testdata/everything-dual-stack-iptables.txt");
});

test("lo comes up before a route leads there", () => {
  const lo = { name: "lo", up: false, mtu: 65_536, group: 0, hasIpv4Address: true, addresses: [] };
  const plan = planGateway(config, facts);
  const { differences, steps } = changes(plan, { ...NOTHING, links: [lo] });
  expect(differences).toContainEqual({ object: "link", text: "not done: ip link set lo up" });
  expect(renderSteps(steps)).toMatch(/link set lo up\n.*route replace local .*route replace local /s);
  const whole = changes(plan, { ...NOTHING, links: [{ ...lo, up: true }] });
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
