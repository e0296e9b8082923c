import { FAMILIES, rangeOf } from "@egress-nat/addresses";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { guardTable } from "../backends/nft/guard-table.ts";
import { linkName } from "../iproute/links.ts";
import type { Route } from "../iproute/routes.ts";
import { PRIVATE_RANGES, parseAddress, parseCidr } from "../routing/cidr.ts";
import { aroundBoundaries, holds, type Situation, situation } from "../testing/arbitrary.ts";
import { type ClientPlan, planClient } from "./plan.ts";

vi.setConfig({ testTimeout: 60_000 });

function planFor({ carriers, clusterRanges, mainRoutes }: Situation): ClientPlan {
  const egresses = carriers.map(({ name, destinations, excluded }, index) => ({
    name,
    destinations,
    excluded,
    gateways: [{ ipv4: `100.127.0.${index + 1}` }],
    peers: [],
    port: 5555,
    sourcePortAuto: false,
    originatingOnly: true,
  }));
  const uplink = { name: "eth0", mtu: 1500, addresses: { ipv4: "100.127.1.1" } };
  return planClient(
    { uplink: "eth0", egresses, clusterRanges },
    {
      ...{ uplink, mainRoutes, forget: [], needsAdvertisements: false, families: FAMILIES, pins: new Map() },
      ways: [],
    },
  );
}

/** As the kernel does it: rules in order, in each table the longest prefix, and of equals the best metric. */
function route(address: bigint, { bypassRules, rules, routes }: ClientPlan, mainRoutes: readonly string[]) {
  const lookup = (table: number): Route | undefined =>
    routes
      .filter((candidate) => candidate.table === table && holds(candidate.destination, address))
      .sort((a, b) => prefixLength(b) - prefixLength(a) || (a.metric ?? 0) - (b.metric ?? 0))[0];
  for (const { selector, action } of [...bypassRules, ...rules].sort((a, b) => a.preference - b.preference)) {
    if (selector.startsWith("fwmark")) continue;
    if (selector.startsWith("to ") && !holds(selector.slice(3), address)) continue;
    if (action.includes("suppress_prefixlength")) {
      if (mainRoutes.some((cidr) => holds(cidr, address))) return undefined;
    } else if (action === "lookup 254") {
      return undefined;
    } else {
      const found = lookup(Number(action.replace("lookup ", "")));
      if (found !== undefined && found.type !== "throw") return found;
    }
  }
  return undefined;
}

function prefixLength({ destination }: Route): number {
  return parseCidr(destination).length;
}

function guards(plan: ClientPlan, address: bigint): boolean {
  const elements = guardTable(plan.policy).sets.find(({ name }) => name === "guarded4")?.elements ?? [];
  return elements.some((element) => {
    const [first = "", last] = element.split("-");
    if (last === undefined) {
      const range = parseCidr(first);
      return range.first <= address && address <= rangeOf(range).last;
    }
    return parseAddress(first).value <= address && address <= parseAddress(last).value;
  });
}

function boundariesOf({ carriers, clusterRanges, mainRoutes }: Situation): string[] {
  return [
    ...carriers.flatMap(({ destinations, excluded }) => [...destinations, ...excluded]),
    ...[...clusterRanges, ...mainRoutes, ...PRIVATE_RANGES],
  ];
}

test("what the routes send to a tunnel is what the guard guards, and nothing else, and goes to the owner's gateway", () => {
  fc.assert(
    fc.property(situation, (given) => {
      const plan = planFor(given);
      for (const address of aroundBoundaries(boundariesOf(given))) {
        const taken = route(address, plan, given.mainRoutes);
        expect(guards(plan, address)).toBe(taken !== undefined);
        // The metric decides only once the link is gone.
        if (taken !== undefined) expect(taken.type).toBe("unicast");
      }
    }),
    { numRuns: 60 },
  );
});

test("what a tunnel carried ends when its link is gone, and goes no other way", () => {
  fc.assert(
    fc.property(situation, (given) => {
      const plan = planFor(given);
      for (const gone of new Set(plan.links.map(linkName))) {
        const rest = { ...plan, routes: plan.routes.filter(({ device }) => device !== gone) };
        for (const address of aroundBoundaries(boundariesOf(given))) {
          const before = route(address, plan, given.mainRoutes);
          const after = route(address, rest, given.mainRoutes);
          if (before?.device === gone) expect(after?.type).toBe("unreachable");
          else expect(after).toEqual(before);
        }
      }
    }),
    { numRuns: 60 },
  );
});

test("while routes are added nothing goes to a tunnel that it goes to neither before nor after", () => {
  fc.assert(
    fc.property(situation, situation, (former, { carriers }) => {
      const current = { ...former, carriers };
      const [before, after] = [planFor(former), planFor(current)];
      const rules = {
        bypassRules: [...before.bypassRules, ...after.bypassRules],
        rules: [...before.rules, ...after.rules],
      };
      const addresses = aroundBoundaries([...boundariesOf(former), ...boundariesOf(current)]);
      const deviceBy = (plan: ClientPlan) => (address: bigint) =>
        route(address, plan, former.mainRoutes)?.device;
      const allowed = addresses.map((address) => [
        deviceBy(before)(address),
        deviceBy(after)(address),
        undefined,
      ]);
      let { routes } = before;
      for (const added of after.routes) {
        routes = [...routes.filter((each) => !isReplacedBy(added, each)), added];
        const found = addresses.map(deviceBy({ ...after, ...rules, routes }));
        for (const [index, device] of found.entries()) expect(allowed[index]).toContain(device);
      }
    }),
    { numRuns: 60 },
  );
});

function isReplacedBy(added: Route, { table, destination, metric }: Route): boolean {
  return added.table === table && added.destination === destination && added.metric === metric;
}
