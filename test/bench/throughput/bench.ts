import { join } from "node:path";
import type { GatewayBackend } from "@egress-nat/founat";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import type { VirtualMachine } from "../../bed/vm/virtual-machine.ts";
import { compareBackends } from "../backends.ts";
import { withMachine } from "../machine.ts";
import { type Findings, type Report, ratioOfPairs, type Series } from "../report.ts";
import { interleave, type Samples } from "../samples.ts";
import { SECONDS, tcpThroughput } from "./iperf.ts";
import { clientOf, type Path, TARGET } from "./paths.ts";
import { topologyScript } from "./topology.ts";

const LIMIT = { atLeast: 0.95 };

const UNIT = "Mbit/s";

/**
 * TCP through the product's tunnel and NAT, beside the same path made by hand. On shared processors one second is not like
 * the next, and a few percent of a difference would take hundreds of samples to see: so the machine's own clock counts.
 */
export async function benchThroughput(rounds: number, backend: GatewayBackend): Promise<Report> {
  await needCommands(["iperf3"]);
  return withMachine({ cpus: 1, countsInstructions: true }, async (machine, folder) => {
    await bundleProgram(join(import.meta.dirname, "data-path.ts"), join(folder, "data-path"));
    const measured = backend === "iptables" ? iptablesBesideNftables : productBesideHand;
    return {
      bench: "throughput",
      setup: `one TCP flow of ${SECONDS} s through tunnel and NAT, in a virtual machine of one processor`,
      ...(await measured(machine, folder, rounds)),
    };
  });
}

async function productBesideHand(machine: VirtualMachine, folder: string, rounds: number): Promise<Findings> {
  await machine.run(topologyScript(["product", "hand"]));
  await makePath(machine, folder, "product", 1);
  const samples = await interleave(rounds, {
    product4: () => throughput(machine, "product", TARGET.ipv4),
    hand4: () => throughput(machine, "hand", TARGET.ipv4),
    product6: () => throughput(machine, "product", TARGET.ipv6),
    hand6: () => throughput(machine, "hand", TARGET.ipv6),
  });
  const [product4, hand4] = [
    rate("egress-nat, IPv4", samples.product4),
    rate("by hand, IPv4", samples.hand4),
  ];
  const [product6, hand6] = [
    rate("egress-nat, IPv6", samples.product6),
    rate("by hand, IPv6", samples.hand6),
  ];
  return {
    series: [product4, hand4, product6, hand6],
    targets: [
      ratioOfPairs("IPv4: egress-nat / by hand", product4, hand4, LIMIT),
      ratioOfPairs("IPv6: egress-nat / by hand", product6, hand6, LIMIT),
    ],
  };
}

async function iptablesBesideNftables(
  machine: VirtualMachine,
  folder: string,
  rounds: number,
): Promise<Findings> {
  const paths = { nftables: "product", iptables: "iptables" } as const;
  await machine.run(topologyScript(Object.values(paths)));
  return compareBackends(async (clients) => {
    for (const path of Object.values(paths)) await makePath(machine, folder, path, clients);
    const { nftables4, iptables4, nftables6, iptables6 } = await interleave(rounds, {
      nftables4: () => throughput(machine, paths.nftables, TARGET.ipv4),
      iptables4: () => throughput(machine, paths.iptables, TARGET.ipv4),
      nftables6: () => throughput(machine, paths.nftables, TARGET.ipv6),
      iptables6: () => throughput(machine, paths.iptables, TARGET.ipv6),
    });
    return [
      { name: "IPv4", unit: UNIT, samples: { nftables: nftables4, iptables: iptables4 } },
      { name: "IPv6", unit: UNIT, samples: { nftables: nftables6, iptables: iptables6 } },
    ];
  });
}

/** Makes the client and the gateway of a path, or has the gateway know more clients. */
async function makePath(machine: VirtualMachine, folder: string, path: Path, clients: number): Promise<void> {
  await machine.run(["node", join(folder, "data-path/main.js"), path, String(clients)], {
    timeoutMs: 600_000,
  });
}

function rate(name: string, samples: Samples): Series {
  return { name, unit: UNIT, samples };
}

function throughput(machine: VirtualMachine, path: Path, target: string): Promise<number> {
  return tcpThroughput(machine, clientOf(path).netns, target);
}
