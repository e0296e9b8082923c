import { expect, test } from "vitest";
import { INTERNET_EGRESS, OFFICE_EGRESS } from "./kit/names.ts";
import { describeOnline, gatewaysOf, player } from "./kit/world.ts";

describeOnline("two Egresses, one for private destinations and one for the internet", (internet) => {
  test("a client of both reaches each destination through the gateway that serves it", async () => {
    const carol = await player("carol");
    const [office] = await gatewaysOf(OFFICE_EGRESS);
    const { narrow, narrowTen } = internet;
    expect(await carol.seenBy([narrow.ipv4, narrow.ipv6, narrowTen])).toEqual([
      { tcp: office?.ipv4, udp: office?.ipv4 },
      { tcp: office?.ipv6, udp: office?.ipv6 },
      { tcp: office?.ipv4, udp: office?.ipv4 },
    ]);

    const [wide4, wide6] = await carol.seenBy([internet.wide.ipv4, internet.wide.ipv6]);
    const gateways = await gatewaysOf(INTERNET_EGRESS);
    expect(gateways.map(({ ipv4 }) => ipv4)).toContain(wide4?.tcp);
    expect(gateways.map(({ ipv6 }) => ipv6)).toContain(wide6?.tcp);
  });

  test("a client of the wide one alone reaches private destinations with its own address", async () => {
    const alice = await player("alice");
    expect(await alice.seenBy([internet.narrow.ipv4, internet.narrow.ipv6])).toEqual([
      { tcp: alice.ipv4, udp: alice.ipv4 },
      { tcp: alice.ipv6, udp: alice.ipv6 },
    ]);
  });
});
