import { FAMILIES, type Family } from "@egress-nat/addresses";
import { beforeEach, expect, test } from "vitest";
import { addressOf, ask, flows, forgetLeaks, inside, leaks } from "../testing/topology.ts";
import { first, LIVE, leaving, meanwhile, second, useTwoGateways, whose } from "../testing/two-gateways.ts";

const { use } = useTwoGateways();
const inBoth = <T>(talk: (family: Family) => Promise<T>) => Promise.all(FAMILIES.map(talk));

beforeEach(forgetLeaks);

/** Waits until the client has an answered flow of each family by which this stands in conntrack's list. */
async function begun(text: string): Promise<void> {
  const answered = async () => (await flows("client", text)).filter((line) => !line.includes("UNREPLIED"));
  await expect.poll(answered, { timeout: 20_000 }).toHaveLength(2);
}

test("echoes of one identifier stay with the gateway that they began with", async () => {
  const [old, fresh] = [4711, 4712];
  const ping = (id: number, family: Family, options: string) =>
    `ping -n -e ${id} ${options} ${addressOf("internet", family)}`;
  const goOn = (family: Family) =>
    inside(
      "client",
      `${ping(old, family, "-i 0.1")} & while [ -e ${LIVE.lasts} ]; do sleep 0.1; done; kill -INT $!; wait $!`,
    );
  await use(first);
  const answers = await meanwhile(
    () => inBoth(goOn),
    async () => {
      await begun(`id=${old}`);
      await use(second, leaving(first));
      await inBoth((family) => inside("client", ping(fresh, family, "-c 3 -i 0.5")));
    },
  );
  for (const answer of answers) {
    const answered = [...answer.matchAll(/icmp_seq=(\d+) ttl/g)].map(([, number]) => Number(number));
    expect(answered).toEqual(answered.map((_, index) => index + 1));
    expect(answered.length).toBeGreaterThan(5);
  }
  expect(await flows("gateway", `id=${old}`)).toHaveLength(2);
  expect(await flows("stranger", `id=${old}`)).toEqual([]);
  expect(await flows("stranger", `id=${fresh}`)).toHaveLength(2);
  expect(await leaks()).toBe(0);
});

test("a flow whose program gives its packets a mark stays as well", async () => {
  const talk = (options: object) =>
    inBoth(async (family) => {
      const answers = await ask("client", "tcp", addressOf("internet", family), { mark: 0x1, ...options });
      return [...new Set(answers.split("\n").map((answer) => whose(family, answer)))];
    });
  await use(first);
  const met = await meanwhile(
    () => talk(LIVE),
    async () => {
      await begun("dport=9000");
      await use(second, leaving(first));
      expect(await talk({})).toEqual([["second"], ["second"]]);
    },
  );
  expect(met).toEqual([["first"], ["first"]]);
  expect(await leaks()).toBe(0);
});
