import { describe, expect, test } from "vitest";
import type { TunnelLink } from "../iproute/links.ts";
import { linkName } from "../iproute/links.ts";
import type { NetworkState } from "../iproute/state.ts";
import { markOf, marksOf } from "./mark.ts";
import { pinNumbers, pinRouting, pinsOf, stalePins } from "./pins.ts";

const MASK = 0xff000000;

function link(remote: string): TunnelLink {
  const family = remote.includes(":") ? "ipv6" : "ipv4";
  return { family, remote, sourcePortAuto: false, port: 5555, local: "", uplink: "eth0", mtu: 1472 };
}

const links = Array.from({ length: 254 }, (_, index) => link(`10.244.1.${index}`));

/** What the kernel holds once the plan of these links is applied. */
function kernelOf(some: readonly TunnelLink[]): NetworkState {
  const { routes, rules } = pinRouting(pinsOf(some, new Map(), MASK), { ipv4: "10.244.1.7" });
  return {
    ...{ links: [], fouPorts: [] },
    rules: rules.map((rule) => ({ ...rule, protocol: 30 })),
    routes: routes.map((route) => ({ ...route, metric: route.metric ?? 0, protocol: 30 })),
  };
}

describe("the numbers of links", () => {
  test("are each once, of both families together, and as many as the mask has", () => {
    const numbers = pinsOf(links, new Map(), MASK).map(({ number }) => number);
    expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 254 }, (_, index) => index + 1));
    expect(pinsOf([...links, link("fd00::1")], new Map(), MASK)).toHaveLength(254);
  });

  test("stay as the kernel has them, whatever comes before", () => {
    const [one, other] = [link("10.0.0.1"), link("fd00::1")];
    const known = pinNumbers(kernelOf([other]));
    const [, kept] = pinsOf([one, other], known, MASK);
    expect(kept?.number).toBe(known.get(linkName(other)));
  });

  test("are the same again where the kernel has lost them", () => {
    const [first] = pinsOf([link("10.0.0.1")], new Map(), MASK);
    const [again] = pinsOf([link("10.0.0.1"), link("10.0.0.2")], new Map(), MASK);
    expect(again).toEqual(first);
  });

  test("are those of a gateway, whatever the source port of its link becomes", () => {
    const one = link("10.0.0.1");
    const known = pinNumbers(kernelOf([one]));
    const [pin] = pinsOf([{ ...one, sourcePortAuto: true }], known, MASK);
    expect(pin?.link).not.toBe(linkName(one));
    expect(known.get(linkName(one))).toBe(pin?.number);
  });

  test("are known of a link that somebody has taken down, and with it its routes", () => {
    const one = link("10.0.0.1");
    const down = { name: linkName(one), up: false, mtu: 0, group: 118, hasIpv4Address: false, addresses: [] };
    const known = pinNumbers({ ...kernelOf([one]), routes: [], links: [down] });
    expect(known).toEqual(pinNumbers(kernelOf([one])));
  });

  test("are not taken from another link by one that somebody has taken down", () => {
    const first = (of: TunnelLink) => pinsOf([of], new Map(), MASK)[0]?.number;
    const alike = [...Map.groupBy(links, first).values()].find(({ length }) => length > 1);
    const [owner, down] = alike as [TunnelLink, TunnelLink];
    const { routes, ...kernel } = kernelOf([owner, down]);
    const known = pinNumbers({
      ...kernel,
      routes: routes.filter(({ device }) => device !== linkName(down)),
      links: [owner, down].map((each) => ({
        ...{ name: linkName(each), up: each !== down, mtu: 0, group: 118, hasIpv4Address: false },
        addresses: [],
      })),
    });
    for (const order of [
      [owner, down],
      [down, owner],
    ]) {
      const pins = pinsOf(order, known, MASK);
      expect(pins.find((pin) => pin.link === linkName(owner))?.number).toBe(first(owner));
    }
  });

  test("of links that are about to go are nobody else's: flows may have them", () => {
    const [one, other] = [link("10.0.0.1"), link("10.0.0.2")];
    const [former] = pinsOf([other], new Map(), MASK);
    const known = new Map([[linkName(one), former?.number ?? 0]]);
    const [pin] = pinsOf([other], known, MASK);
    expect(pin?.number).not.toBe(former?.number);
  });

  test("have to wait where links that are about to go have all, as many as they may become", () => {
    const known = new Map([
      ["fou4_00000001", 1],
      ["fou4_00000002", 2],
    ]);
    const [one, other, third] = [link("10.0.0.1"), link("10.0.0.2"), link("10.0.0.3")];
    expect(pinsOf([one, other], known, 0x3)).toEqual([]);
    expect(pinsOf([one, other], new Map(), 0x3)).toHaveLength(2);
    expect(pinsOf([one, other, third], new Map(), 0x3)).toHaveLength(2);
  });

  test("of links that are gone are stale", () => {
    const [one, other] = [link("10.0.0.1"), link("10.0.0.2")];
    const state = kernelOf([one, other]);
    const pins = pinsOf([one], pinNumbers(state), MASK);
    const [gone] = pinsOf([other], pinNumbers(state), MASK);
    expect(stalePins(pins, state)).toEqual([{ mark: gone?.mark }]);
    expect(stalePins([], state)).toHaveLength(2);
  });
});

test("marks take the bits of their mask, wherever these are, and never none or all", () => {
  const mask = 0x80000101;
  expect(marksOf(mask)).toBe(6);
  const values = Array.from({ length: 6 }, (_, index) => markOf(index + 1, mask).value);
  expect(values).toEqual([0x1, 0x100, 0x101, 0x80000000, 0x80000001, 0x80000100]);
});
