import { FAMILIES } from "@egress-nat/addresses";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";
import { clientConfig, egress, silent } from "../testing/configs.ts";
import { Interrupted, interruptedKernel } from "../testing/interrupted.ts";
import {
  type AskOptions,
  addressOf,
  ask,
  forgetLeaks,
  inside,
  kernelOf,
  leaks,
  listen,
  refused,
  seenBy,
} from "../testing/topology.ts";
import {
  configured,
  first,
  LIVE,
  leaving,
  meanwhile,
  second,
  service,
  useTwoGateways,
  whose,
} from "../testing/two-gateways.ts";
import { Client } from "./client.ts";
import type { ClientConfig, ClientGateway } from "./config.ts";

const { client, use } = useTwoGateways();
const protocols = ["tcp", "udp"] as const;
const ways = FAMILIES.flatMap((family) => protocols.map((protocol) => ({ family, protocol })));
type Way = (typeof ways)[number];

/** In the pod: the namespace of the neighbour plays it. */
const CONTAINER = "172.17.0.2";
/** Those that lead to tunnels. */
const LOSE_RULES =
  "for pref in 1860 2100 2101; do while ip rule del pref $pref 2>/dev/null; do :; done; done";

/** As docker-in-docker does it: a network of the pod's own, translated to its address. */
beforeAll(() =>
  inside(
    "client",
    `set -e
       ip link add docker0 type veth peer name inner netns neighbour
       ip address add 172.17.0.1/24 dev docker0; ip link set docker0 up
       ip -n neighbour address add ${CONTAINER}/24 dev inner; ip -n neighbour link set inner up
       ip -n neighbour route add ${addressOf("internet", "ipv4")} via 172.17.0.1
       sysctl -qw net.ipv4.ip_forward=1
       nft 'add table ip docker
       add chain ip docker o { type nat hook postrouting priority srcnat; }
       add rule ip docker o ip saddr ${CONTAINER} oifname != docker0 masquerade'`,
  ),
);
beforeEach(async () => {
  // What nobody waits for any more is sent again for a while, also when there is no guard.
  for (const name of ["client", "neighbour"] as const)
    await inside(name, "ss -K -H -t state connected >/dev/null");
  await client.remove();
  await inside("client", "conntrack -F 2>/dev/null");
  await forgetLeaks();
});

/** The gateways that a new flow of each kind leaves by. */
function newFlows(): Promise<string[]> {
  return Promise.all(
    ways.map(async ({ family, protocol }) =>
      whose(family, await ask("client", protocol, addressOf("internet", family))),
    ),
  );
}

/** Flows of each kind that go on while something is done: the gateways, or errors, that each has met. */
async function liveFlows(work: () => Promise<unknown>): Promise<{ way: Way; met: string[] }[]> {
  const talk = async (way: Way) => {
    const { family, protocol } = way;
    const answers = await ask("client", protocol, addressOf("internet", family), LIVE);
    return { way, met: [...new Set(answers.split("\n").map((answer) => whose(family, answer)))] };
  };
  return meanwhile(
    () => Promise.all(ways.map(talk)),
    async () => {
      await begun();
      await work();
    },
  );
}

/** These gateways for what the tests ask, and others for all else. */
function besidesOthers(...gateways: readonly ClientGateway[]): ClientConfig {
  const destinations = [`${addressOf("internet", "ipv4")}/32`, `${addressOf("internet", "ipv6")}/128`];
  const [wide] = configured(service).egresses;
  return clientConfig(egress({ ...wide, name: "partners/nat", destinations, gateways }), egress(wide));
}

/** Waits until each of the flows has been answered. */
async function begun(): Promise<void> {
  const command = "conntrack -L 2>/dev/null | grep -c 'dport=9000 .*ASSURED' || true";
  await expect.poll(() => inside("client", command), { timeout: 20_000 }).toMatch(/^[4-9]/);
}

/** Waits until a connection of this address has been answered. */
async function begunBy(address: string): Promise<void> {
  const live = `conntrack -L 2>/dev/null | grep -c 'ESTABLISHED src=${address} .*ASSURED' || true`;
  await expect.poll(() => inside("client", live), { timeout: 20_000 }).toBe("1\n");
}

/** The destination drops what a rule of nft says. */
async function dropping<T>(rule: string, work: () => Promise<T>): Promise<T> {
  await inside(
    "internet",
    `nft 'add table ip quiet; add chain ip quiet i { type filter hook input priority 0; }
     add rule ip quiet i ${rule} drop'`,
  );
  try {
    return await work();
  } finally {
    await inside("internet", "nft delete table ip quiet");
  }
}

const all = (gateway: string) => ways.map(() => gateway);

test("flows stay with the gateway that they began with, whoever takes new ones", async () => {
  await use(service);
  const flows = await liveFlows(async () => {
    await use(second, leaving(service));
    expect(await newFlows()).toEqual(all("second"));
    await use(first, leaving(service), leaving(second));
    expect(await newFlows()).toEqual(all("first"));
    await use(leaving(service), second, leaving(first));
  });
  expect(flows).toEqual(ways.map((way) => ({ way, met: ["first"] })));
  expect(await leaks()).toBe(0);
});

test("they do when another program looks after the client", async () => {
  await use(first);
  const flows = await liveFlows(async () => {
    const next = new Client({ kernel: kernelOf("client"), logger: silent });
    await next.apply(configured(second, leaving(first)));
  });
  expect(flows).toEqual(ways.map((way) => ({ way, met: ["first"] })));
});

test("gateways that both take new flows share them", async () => {
  await use(first, second);
  const met: string[] = [];
  for (let round = 0; round < 6; round += 1) met.push(...(await newFlows()));
  expect(new Set(met)).toEqual(new Set(["first", "second"]));
});

describe("without a look", () => {
  const spare = (gateway: ClientGateway): ClientGateway => ({ ...gateway, flows: "spare" });

  test("new flows are led to a spare gateway, and back, and those that there are stay", async () => {
    const before = configured(first, spare(second));
    const after = configured(second, leaving(first));
    let { known } = await client.repair(before);
    const steer = async (config: ClientConfig) => {
      known = (await client.steer(config, known)) ?? expect.fail("there is no tunnel");
    };
    const flows = await liveFlows(async () => {
      await steer(after);
      expect(await newFlows()).toEqual(all("second"));
      await steer(configured(first, second));
      await steer(before);
      expect(await newFlows()).toEqual(all("first"));
    });
    expect(flows).toEqual(ways.map((way) => ({ way, met: ["first"] })));
    expect(await client.check(before)).toEqual([]);
    await steer(after);
    await client.apply(after);
    expect(await newFlows()).toEqual(all("second"));
    expect(await client.check(after)).toEqual([]);
  });

  test("flows of a gateway that is gone are ended, and new ones begin with the spare one", async () => {
    const { known } = await client.repair(configured(first, spare(second)));
    const flows = await liveFlows(() => client.steer(configured(second), known));
    for (const { way, met } of flows) expect([way, met.length]).toEqual([way, 2]);
    expect(await newFlows()).toEqual(all("second"));
    expect(await leaks()).toBe(0);
  });

  test("those of an Egress without gateways are refused, and begin with those of no other one", async () => {
    let { known } = await client.repair(besidesOthers(first));
    expect(await newFlows()).toEqual(all("first"));
    for (const left of [[leaving(first)], []]) {
      known = (await client.steer(besidesOthers(...left), known)) ?? expect.fail("it takes a look");
      for (const answer of await newFlows()) expect(answer).toMatch(/^E[A-Z]+$/);
    }
    expect(await leaks()).toBe(0);
  });

  test("nothing is done where it takes a tunnel that is not there, or the guard is gone", async () => {
    const { known } = await client.repair(configured(first));
    expect(await client.steer(configured(second), known)).toBeUndefined();
    expect(await client.check(configured(first))).toEqual([]);
    await inside("client", "nft delete table inet egress_nat_client");
    await expect(client.steer(configured({}, leaving(first)), known)).rejects.toThrow("No such file");
    expect(await inside("client", "nft list tables")).not.toContain("egress_nat_client");
  });
});

/** Connections by a reset; all else begins anew with the second gateway. */
function expectEnded(flows: readonly { way: Way; met: string[] }[]): void {
  for (const { way, met } of flows) {
    const [before, error, ...after] = met;
    expect([way, before]).toEqual([way, "first"]);
    expect(
      way.protocol === "tcp" ? ["ECONNRESET", "ECONNABORTED"] : ["EPERM", "EHOSTUNREACH", "second"],
    ).toContain(error);
    expect(after).toEqual([]);
  }
}

describe("the flows of a gateway that is gone", () => {
  test("are ended: connections by a reset, all else begins anew once its program was told", async () => {
    await use(first);
    expectEnded(await liveFlows(() => use(second)));
    expect(await newFlows()).toEqual(all("second"));
  });

  test.each([0, 100])("are ended while they wait, beside %i others", async (others) => {
    await inside(
      "client",
      `bash -c 'for port in $(seq ${others}); do echo > /dev/udp/127.0.0.1/$port; done'`,
    );
    const { known } = await client.repair(configured(first, { ...second, flows: "spare" }));
    const open = () => inside("client", "ss -H -t -n state established | wc -l");
    const options = { times: 2, pause: 10 };
    // The last one as a program has it that knows sockets of IPv6 only.
    const ipv4 = addressOf("internet", "ipv4");
    const waiting = [ipv4, addressOf("internet", "ipv6"), `::ffff:${ipv4}`].map((address) =>
      ask("client", "tcp", address, options),
    );
    await expect.poll(open, { timeout: 20_000 }).toBe("3\n");
    await client.steer(configured(second), known);
    expect(await open()).toBe("0\n");
    const ended = (await Promise.all(waiting)).map((talk) => talk.split("\n")[1]);
    expect(ended).toEqual(["ECONNABORTED", "ECONNABORTED", "ECONNABORTED"]);
  });

  test("are ended as well where its address is another Egress's by then, and nobody remembers", async () => {
    const natOf = (nat: ClientGateway, others: ClientGateway) => {
      const [partners, wide] = besidesOthers(nat).egresses;
      return clientConfig(egress(partners), egress({ ...wide, gateways: [others] }));
    };
    await client.apply(natOf(first, service));
    const flows = await liveFlows(() => client.apply(natOf(second, first)));
    expectEnded(flows);
    expect(await newFlows()).toEqual(all("second"));
    expect(await client.check(natOf(second, first))).toEqual([]);
    expect(await leaks()).toBe(0);
  });

  test("leave other connections of the client alone", async () => {
    await use(first);
    const flows = await liveFlows(async () => {
      await use(second, leaving(first));
      await newFlows();
      await use(leaving(first));
    });
    expect(flows).toEqual(ways.map((way) => ({ way, met: ["first"] })));
  });
});

test("flows of containers in the pod stay as well, and are ended with their gateway", async () => {
  const ask4 = (options: AskOptions) => ask("neighbour", "tcp", addressOf("internet", "ipv4"), options);
  const newFlow = async () => whose("ipv4", await ask4({ timeout: 5 }));
  const liveFlow = async (work: () => Promise<unknown>) => {
    const answers = await meanwhile(
      () => ask4(LIVE),
      async () => {
        await begunBy(CONTAINER);
        await work();
      },
    );
    return [...new Set(answers.split("\n").map((answer) => whose("ipv4", answer)))];
  };
  await use(first);
  const kept = await liveFlow(async () => {
    await use(second, leaving(first));
    expect(await newFlow()).toBe("second");
  });
  expect(kept).toEqual(["first"]);
  await use(first);
  expect(await liveFlow(() => use(second))).toEqual(["first", "ECONNRESET"]);
  await use(first, second);
  const met = new Set<string>();
  for (let round = 0; round < 16; round += 1) met.add(await newFlow());
  expect(met).toEqual(new Set(["first", "second"]));
  expect(await leaks()).toBe(0);
});

describe("connections of containers, when their gateway is gone", () => {
  const destination = addressOf("internet", "ipv4");
  const states = () => inside("client", `conntrack -L -s ${CONTAINER} 2>/dev/null`);

  test("are over while they wait, also where the destination knows them no more and is silent", async () => {
    const unknown = `ip saddr ${addressOf("stranger", "ipv4")} tcp flags & syn == 0`;
    await dropping(unknown, async () => {
      const { known } = await client.repair(configured(first, { ...second, flows: "spare" }));
      const talk = ask("neighbour", "tcp", destination, { times: 2, pause: 8, timeout: 5 });
      await begunBy(CONTAINER);
      await client.steer(configured(second), known);
      expect(await states()).toMatch(/ CLOSE /);
      expect((await talk).split("\n").at(-1)).toBe("ECONNRESET");
    });
  });
});

/** The client, by other programs in Perl. */
function clientBy(changed: (args: readonly string[]) => readonly string[]): Client {
  const kernel = kernelOf("client");
  const changedStep = (step: Step) =>
    "file" in step && step.file === "perl" ? { ...step, args: changed(step.args) } : step;
  const run = (steps: readonly Step[]) => kernel.run(steps.map(changedStep));
  return new Client({ kernel: { ...kernel, run }, logger: silent });
}

/**
 * It is led elsewhere, and none of its flows is ended: without their marks. What stays is `-e`, a program, `--`, after how
 * many messages flows are led, and the mask.
 */
const ledOnly = clientBy((args) => args.slice(0, 5));

/** It waits between the look at all flows and the end of those that nobody has answered. */
const slow = clientBy((args) => args.map((arg) => arg.replace("end_connections(@own)", "sleep 4, $&")));

/** Somebody tries to connect, and is not answered before a client is steered. */
async function steeredMeanwhile(
  name: "client" | "neighbour",
  steered: Client,
  ...gateways: readonly ClientGateway[]
): Promise<{ talk: Promise<string> }> {
  const { known } = await client.repair(configured(first, { ...second, flows: "spare" }));
  const talk = ask(name, "tcp", addressOf("internet", "ipv4"), { times: 2, pause: 5, timeout: 20 });
  const states = () => inside("client", "conntrack -L -p tcp 2>/dev/null");
  await expect.poll(states, { timeout: 20_000 }).toMatch(/ SYN_SENT /);
  const picked = () => inside("client", "nft list set inet egress_nat_client picked");
  const before = await picked();
  await steered.steer(configured(...gateways), known);
  expect(await picked()).not.toBe(before);
  return { talk };
}

const kept = leaving(first);
const gatewaysOf = (talk: string) => talk.split("\n").map((answer) => whose("ipv4", answer));
test.each([
  ["a container whose gateway is gone", "neighbour", client, []],
  ["the pod itself whose gateway is gone", "client", client, []],
  ["a container whose flows are still to be ended", "neighbour", ledOnly, []],
  ["the pod itself whose flows are still to be ended", "client", ledOnly, []],
  ["a container whose gateway keeps the flows that it has", "neighbour", client, [kept]],
  ["the pod itself whose gateway keeps the flows that it has", "client", client, [kept]],
] as const)(
  "connections of %s are made with another gateway where nobody has answered yet",
  async (_, name, steered, others) => {
    await dropping(`ip saddr ${addressOf("gateway", "ipv4")} tcp flags syn`, async () => {
      const { talk } = await steeredMeanwhile(name, steered, second, ...others);
      await client.apply(configured(second, ...others));
      expect(gatewaysOf(await talk)).toEqual(["second", "second"]);
    });
  },
);

test("one that is made with another gateway while flows are ended goes on", async () => {
  await use(first);
  await meanwhile(
    () => ask("client", "tcp", addressOf("internet", "ipv4"), LIVE),
    async () => {
      await begunBy(addressOf("client", "ipv4"));
      await dropping(`ip saddr ${addressOf("gateway", "ipv4")} tcp flags syn`, async () => {
        const { talk } = await steeredMeanwhile("client", slow, second);
        // Before the program sends anything again, which would begin a flow.
        expect(await inside("client", "conntrack -L -p tcp 2>/dev/null")).toContain(" ESTABLISHED ");
        expect(gatewaysOf(await talk)).toEqual(["second", "second"]);
      });
    },
  );
});

test.each([
  ["a container", "neighbour"],
  ["the pod itself", "client"],
] as const)("those of %s keep theirs where none takes new flows", async (_, name) => {
  const { talk } = await dropping(`ip saddr ${addressOf("gateway", "ipv4")} tcp flags syn`, () =>
    steeredMeanwhile(name, client, kept, leaving(second)),
  );
  await begunBy(name === "client" ? addressOf("client", "ipv4") : CONTAINER);
  await client.apply(configured(kept, leaving(second)));
  expect(gatewaysOf(await talk)).toEqual(["first", "first"]);
});

test("gateways wait for the marks of those that go, where there are no others", async () => {
  const withFew = (gateway: ClientGateway) => ({ ...configured(gateway), markMask: 0x03000000 });
  await client.apply(withFew(first));
  await client.apply(withFew(second));
  expect(await newFlows()).toEqual(all("second"));
  expect(await client.check(withFew(second))).toEqual([]);
});

test("where one gateway is left no packet is marked any more, flows stay, and refusals count on", async () => {
  const chains = "nft list table inet egress_nat_client | grep -c 'chain rerouted\\|chain via' || true";
  const marks = async () => [await inside("client", chains), await refused("rejected")];
  await use(first, second);
  await ask("client", "udp", addressOf("internet", "ipv4"), { device: "eth0" });
  expect(await marks()).toEqual(["5\n", 1]);
  await use(first);
  const flows = await liveFlows(async () => {
    expect(await marks()).toEqual(["0\n", 1]);
    await use(second, leaving(first));
    expect(await newFlows()).toEqual(all("second"));
    await use(leaving(first));
    expect(await marks()).toEqual(["3\n", 1]);
    await use(first);
    expect(await marks()).toEqual(["0\n", 1]);
  });
  expect(flows).toEqual(ways.map((way) => ({ way, met: ["first"] })));
  expect(await client.check(configured(first))).toEqual([]);
  expect(await leaks()).toBe(0);
});

test("a repair that has changed something does not end with its signal before it is done", async () => {
  await use(first, second);
  const [kernel, ended] = [kernelOf("client"), new AbortController()];
  const urgent: Kernel = {
    ...kernel,
    run: (steps) => {
      if (steps.length > 0) ended.abort(new Error("something else is urgent"));
      return kernel.run(steps);
    },
  };
  await new Client({ kernel: urgent, logger: silent }).repair(configured(first), ended.signal);
  expect(ended.signal.aborted).toBe(true);
  expect(await client.check(configured(first))).toEqual([]);
});

test("what the pod leads to a proxy of its own gets there and is of no gateway, with one, with several and with none", async () => {
  await inside(
    "client",
    `nft 'add table ip mesh; add chain ip mesh o { type nat hook output priority -100; }
     add rule ip mesh o udp dport 9000 redirect to :15053'`,
  );
  await listen("client", 15053, { address: "0.0.0.0" });
  for (const [index, gateways] of [[first], [first, second], []].entries()) {
    await use(...gateways);
    await ask("client", "udp", addressOf("internet", "ipv4"), { timeout: 2 });
    expect(await seenBy("client", 15053)).toHaveLength(index + 1);
    const flows = "conntrack -L -p udp --orig-port-dst 9000 2>/dev/null | grep -c ' mark=0 '";
    expect(await inside("client", flows)).toBe(`${index + 1}\n`);
  }
  await inside("client", "nft delete table ip mesh");
});

test.each([
  ["one Egress", configured],
  ["two Egresses that have gateways of their own", besidesOthers],
])("no flow is refused while routes still lead to a gateway that is gone, with %s", async (_, configOf) => {
  for (const commands of [0, 1, 2, 3]) {
    await client.remove();
    const { known } = await client.repair(configOf(first, { ...second, flows: "spare" }));
    await client.steer(configOf(second), known);
    const killed = new Client({ kernel: interruptedKernel(kernelOf("client"), commands), logger: silent });
    await expect(killed.apply(configOf(second))).rejects.toThrow(Interrupted);
    expect(await newFlows(), `after ${commands} commands`).toEqual(all("second"));
    await client.apply(configOf(second));
    expect(await client.check(configOf(second))).toEqual([]);
  }
});

test("without the rules that lead to tunnels nothing leaves around them, from containers in the pod neither", async () => {
  const internet = addressOf("internet", "ipv4");
  const sources = [
    { name: "client", address: addressOf("client", "ipv4") },
    { name: "neighbour", address: CONTAINER },
  ] as const;
  await use(first);
  const answers = await meanwhile(
    () => Promise.all(sources.map(({ name }) => ask(name, "tcp", internet, { ...LIVE, timeout: 2 }))),
    async () => {
      for (const { address } of sources) await begunBy(address);
      await inside("client", LOSE_RULES);
      for (const { name } of sources) await ask(name, "tcp", internet, { timeout: 2 });
    },
  );
  const last = answers.map((each) => whose("ipv4", each.split("\n").at(-1) ?? ""));
  expect(last).not.toContain("first");
  expect(await leaks()).toBe(0);
});

test.each([
  ["takes new flows", first],
  ["only keeps those that it has", leaving(first)],
])(
  "without these rules no program leads packets around the only tunnel, whose gateway %s",
  async (_, gateway) => {
    const internet = addressOf("internet", "ipv4");
    await use(first);
    // A flow that the gateway has.
    await ask("client", "udp", internet, { source_port: 40_000 });
    await use(gateway);
    await inside("client", LOSE_RULES);
    const links = await inside(
      "client",
      "ip -o link show | sed -n 's/^[0-9]*: \\(\\(fou4\\|egress4\\)[^@:]*\\).*/\\1/p'",
    );
    for (const towards of links.trim().split("\n")) {
      for (const source_port of [0, 40_000])
        await ask("client", "udp", internet, { towards, source_port, timeout: 1 });
    }
    expect(links).toMatch(/fou4.*\n/);
    expect(await leaks()).toBe(0);
  },
);

test("without the rules of the marks nothing leaves around the tunnel", async () => {
  await use(first);
  await liveFlows(async () => {
    await use(second, leaving(first));
    await inside("client", "for f in -4 -6; do while ip $f rule del pref 1860 2>/dev/null; do :; done; done");
  });
  expect(await leaks()).toBe(0);
});
