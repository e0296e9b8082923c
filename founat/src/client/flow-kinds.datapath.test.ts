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

test("echoes and datagrams that nobody answers go to the gateway that takes new flows: none of them is ever over", async () => {
  const [id, port] = [4713, 4714];
  const send = (family: Family) => {
    const [v, to] = [family === "ipv4" ? "" : "6", addressOf("internet", family)];
    const datagrams = `
import socket, time
s = socket.socket(socket.AF_INET${v}, socket.SOCK_DGRAM)
s.bind(("${addressOf("client", family)}", ${port}))
while True:
    s.sendto(b"x", ("${to}", 9))
    time.sleep(0.2)`;
    return inside(
      "client",
      `ping -n -q -e ${id} -i 0.2 ${to} >/dev/null & p=$!; python3 -c '${datagrams}' & q=$!
       while [ -e ${LIVE.lasts} ]; do sleep 0.1; done; kill -KILL $p $q`,
    );
  };
  const unheard = "icmp type echo-request drop; icmpv6 type echo-request drop; udp dport 9 drop;";
  const arrived = async (role: "gateway" | "stranger") =>
    Promise.all([`id=${id}`, `sport=${port} dport=9`].map(async (text) => (await flows(role, text)).length));
  await use(first);
  await inside(
    "internet",
    `nft 'table inet deaf { chain i { type filter hook input priority 0; ${unheard} }; }'`,
  );
  try {
    await meanwhile(
      () => inBoth(send),
      async () => {
        await expect.poll(() => arrived("gateway"), { timeout: 20_000 }).toEqual([2, 2]);
        await use(second, leaving(first));
        await expect.poll(() => arrived("stranger"), { timeout: 20_000 }).toEqual([2, 2]);
      },
    );
  } finally {
    await inside("internet", "nft delete table inet deaf");
  }
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
