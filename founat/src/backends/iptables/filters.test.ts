import { expect, test } from "vitest";
import { MARKS } from "../../gateway/policy.ts";
import { gatewayPolicyOf } from "../../testing/configs.ts";
import { filterChanges, filterRemoval, parseFilters } from "./filters.ts";

const policy = gatewayPolicyOf({});
/** One filter as tc of Debian 12 prints it: first its classifier. */
const filter = (protocol: string, priority: number, match: string, action: string) => {
  const where = `filter protocol ${protocol} pref ${priority} basic chain 0 `;
  return `${where}\n${where}handle 0x1 \n${match}\taction order 1: ${action}\n\t index 3 ref 1 bind 1\n\n`;
};
const DROP = "gact action drop\n\t random type none pass val 0";
const LISTING = `on eth0 ingress
on eth0 egress
${filter("ip", 1, "  ipset(en-clients4 src)\n\n", DROP)}${filter("ipv6", 2, "  ipset(en-clients6 src)\n\n", DROP)}on fou4 ingress
${filter("ip", 1, "  ipset(en-inner4 src,src)\n\n", `skbedit  mark ${MARKS.passed} pass`)}${filter("all", 2, "", DROP)}on fou4 egress
`;
const changes = (listing: string, replaced: readonly string[] = []) =>
  filterChanges(policy, parseFilters(listing), new Set(replaced));

test("filters that tc prints so are the wanted ones", () => {
  expect(changes(LISTING)).toEqual({ differences: [], lines: [] });
});

test("a link that is made anew gets its filters, what drops first", () => {
  expect(changes(LISTING, ["fou4"]).lines).toEqual([
    "qdisc add dev fou4 clsact",
    "filter add dev fou4 ingress protocol all pref 2 basic action drop",
    `filter add dev fou4 ingress protocol ip pref 1 basic match ipset(en-inner4 src,src) action skbedit mark ${MARKS.passed} pass`,
  ]);
});

test.each([
  ["another action", LISTING.replace("gact action drop", "gact action pass"), "eth0"],
  ["another set", LISTING.replace("en-inner4 src,src", "en-clients4 src"), "fou4"],
  ["one that is missing", LISTING.replace(/filter protocol ipv6(.*\n)*?(?=on )/, ""), "eth0"],
  [
    "one more",
    LISTING.replace("on fou4 egress\n", `on fou4 egress\n${LISTING.split("egress\n")[1] ?? ""}`),
    "fou4",
  ],
])("those of a device are made anew where one differs: %s", (_, listing, device) => {
  const { differences, lines } = changes(listing);
  expect(differences).toEqual([{ object: "filter", text: `tc filter of ${device} is another one` }]);
  expect(lines.slice(0, 2)).toEqual([`qdisc del dev ${device} clsact`, `qdisc add dev ${device} clsact`]);
});

test("only qdiscs of tunnels, and those with filters of founat's, are taken away", () => {
  const others = "on eth1 ingress\non eth1 egress\n";
  const begun = `on fou6 ingress\n${filter("all", 2, "", DROP)}`;
  expect(filterRemoval(parseFilters(LISTING + others + begun)).map(({ input }) => input)).toEqual([
    "qdisc del dev eth0 clsact\nqdisc del dev fou4 clsact\nqdisc del dev fou6 clsact\n",
  ]);
});
