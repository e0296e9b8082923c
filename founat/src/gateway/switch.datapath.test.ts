import { FAMILIES } from "@egress-nat/addresses";
import { machine } from "@egress-nat/test/bed/datapath/machine";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Client } from "../client/client.ts";
import { type Kernel, kernelThrough } from "../kernel/kernel.ts";
import type { Command, Step } from "../kernel/step.ts";
import { isLong } from "../testing/backends.ts";
import { gatewayClient, gatewayConfig, silent } from "../testing/configs.ts";
import { everywhere } from "../testing/data-path.ts";
import { Interrupted, interruptedKernel } from "../testing/interrupted.ts";
import {
  addressOf,
  ask,
  bareAnswers,
  buildTopology,
  destroyTopology,
  inside,
  kernelOf,
  leaks,
} from "../testing/topology.ts";
import type { GatewayBackend } from "./config.ts";
import { Gateway } from "./gateway.ts";
import { prepareGatewayNetns } from "./netns.ts";

const clients = [gatewayClient("client"), gatewayClient("neighbour")];
const gateway = new Gateway(gatewayConfig(), { kernel: kernelOf("gateway"), logger: silent });

beforeAll(async () => {
  await buildTopology();
  await prepareGatewayNetns(kernelOf("gateway"));
  await gateway.init();
  await gateway.sync(clients);
  await new Client({ kernel: kernelOf("client"), logger: silent }).apply(everywhere);
});
afterAll(destroyTopology);

/** What is there of each backend. */
const LEFT: Readonly<Record<GatewayBackend, string>> = {
  nftables: "nft list tables | grep egress_nat; true",
  iptables: `{ iptables-nft-save; ip6tables-nft-save; } | grep EN-
    ipset list -name; tc qdisc show | grep clsact; true`,
};

async function onlyHas(backend: GatewayBackend): Promise<void> {
  const other = backend === "nftables" ? "iptables" : "nftables";
  expect(await inside("gateway", LEFT[other])).toBe("");
  expect(await inside("gateway", LEFT[backend])).not.toBe("");
}

/** TCP talks of the client, one of each family, each on one connection: what the server saw. */
function talks(times: number): Promise<string>[] {
  return FAMILIES.map((family) =>
    ask("client", "tcp", addressOf("internet", family), { times, pause: 0.3, timeout: 60 }),
  );
}

async function live(begun: readonly Promise<string>[]): Promise<void> {
  for (const [index, family] of FAMILIES.entries()) {
    expect(new Set((await begun[index])?.split("\n"))).toEqual(new Set([addressOf("gateway", family)]));
  }
  expect({ leaks: await leaks(), bare: await bareAnswers() }).toEqual({ leaks: 0, bare: 0 });
}

/** @param look after each command */
function watchedKernel(kernel: Kernel, look: (command: Command) => Promise<void>): Kernel {
  const run = async (steps: readonly Step[]) => {
    const outputs: string[] = [];
    for (const step of steps) {
      outputs.push(...(await kernel.run([step])));
      if ("file" in step) await look(step);
    }
    return outputs;
  };
  return { ...kernel, run };
}

test("a host that lacks what a backend needs is told so, and the gateway goes on with the one that it has", async () => {
  // Programs of /usr/sbin, but those of nftables.
  await machine.run("mkdir -p /run/few; ln -sf /usr/sbin/nft /usr/sbin/conntrack /run/few");
  const poor = kernelThrough((file, args, input) => {
    const inNetns = ["nsenter", "--net=/run/netns/gateway", "--", "env", "PATH=/usr/bin:/bin:/run/few"];
    return machine.exec([...inNetns, file, ...args], { input });
  });
  const there = new Gateway(gatewayConfig(), { kernel: poor, logger: silent });
  await there.init();
  await expect(there.configure(gatewayConfig({ backend: "iptables" }))).rejects.toMatchObject({
    code: "backend-unavailable",
    retryable: false,
    message: expect.stringMatching(
      /ipset: not found.*packages iptables, ipset and iproute2.* or use the nftables backend/s,
    ),
  });
  expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
  await there.configure(gatewayConfig());
  expect(await there.check()).toEqual([]);
  await onlyHas("nftables");
});

test("of a change that fails and is taken back nothing stays", async () => {
  // No second qdisc of this kind has room.
  await inside("gateway", "tc qdisc add dev eth0 ingress");
  await expect(gateway.configure(gatewayConfig({ backend: "iptables" }))).rejects.toMatchObject({
    code: "kernel-command-failed",
  });
  await inside("gateway", "tc qdisc del dev eth0 ingress");
  await gateway.configure(gatewayConfig());
  await onlyHas("nftables");
  expect(await gateway.check()).toEqual([]);
});

test("flows and clients live on when a gateway changes its backend, and nothing of the other one stays", async () => {
  const begun = talks(50);
  for (const backend of ["iptables", "nftables", "iptables"] as const) {
    await gateway.configure(gatewayConfig({ backend }));
    await onlyHas(backend);
    expect(await gateway.check()).toEqual([]);
    expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
  }
  await live(begun);
  // Clients that go are known by the marks that they had.
  await gateway.update({ remove: ["client"] });
  expect(await ask("client", "udp", addressOf("internet", "ipv6"), { timeout: 2 })).toBe("timeout");
  await gateway.sync(clients);
});

test("packets of a client pass after each command of a change of backend but one", async () => {
  await gateway.configure(gatewayConfig({ backend: "iptables" }));
  // From there to the next one both filters look at inner packets, by marks of their own.
  for (const [backend, closing] of [
    ["nftables", "nft"],
    ["iptables", "tc"],
  ] as const) {
    const closedAfter: string[] = [];
    const kernel = watchedKernel(kernelOf("gateway"), async ({ file }) => {
      const seen = FAMILIES.map((family) =>
        ask("client", "udp", addressOf("internet", family), { timeout: 2 }),
      );
      if ((await Promise.all(seen)).includes("timeout")) closedAfter.push(file);
    });
    await new Gateway(gatewayConfig({ backend }), { kernel, logger: silent }).init();
    await onlyHas(backend);
    expect(closedAfter).toEqual([closing]);
  }
});

test("links change with the backend", async () => {
  for (const [backend, sourcePortAuto] of [
    ["iptables", false],
    ["nftables", true],
    ["iptables", false],
  ] as const) {
    await gateway.configure(gatewayConfig({ backend, sourcePortAuto }));
    await onlyHas(backend);
    expect(await gateway.check()).toEqual([]);
  }
});

test("what a killed program has left of a question, and of a tunnel's filters, goes with the rest of iptables", async () => {
  await inside(
    "gateway",
    `tc filter del dev fou4 ingress pref 1
     iptables-nft -t raw -N EQ-OUTER
     iptables-nft -t raw -A EQ-OUTER -m set --match-set en-clients4 src -j RETURN`,
  );
  await gateway.configure(gatewayConfig());
  await onlyHas("nftables");
  expect(await inside("gateway", "iptables-nft-save | grep EQ-; true")).toBe("");
  expect(await ask("client", "tcp", addressOf("internet", "ipv4"))).toBe(addressOf("gateway", "ipv4"));
});

test.runIf(isLong).each([5, 8])(
  "the same where its program is killed again and again, each time after %i commands",
  async (commands) => {
    const begun = talks(60);
    for (const backend of ["nftables", "iptables"] as const) {
      const config = gatewayConfig({ backend });
      const killed = () =>
        new Gateway(config, {
          kernel: interruptedKernel(kernelOf("gateway"), commands),
          logger: silent,
        }).init();
      for (let done = false; !done; ) {
        done = await killed().then(
          () => true,
          (error) => {
            expect(error).toBeInstanceOf(Interrupted);
            return false;
          },
        );
      }
      await onlyHas(backend);
      const next = new Gateway(config, { kernel: kernelOf("gateway"), logger: silent });
      await next.sync(clients);
      expect(await next.check()).toEqual([]);
    }
    await live(begun);
  },
);
