import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { FAMILIES, type Family } from "@egress-nat/addresses";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import type { VirtualMachine } from "../../bed/vm/virtual-machine.ts";
import { FOU_PORT } from "../egress.ts";
import { withMachine } from "../machine.ts";
import { progress } from "../progress.ts";
import { type Findings, joined, type Limit, type Report, ratioOfPairs, type Series } from "../report.ts";
import { interleave, type Samples } from "../samples.ts";
import { smallPackets, tcpThroughput } from "../throughput/iperf.ts";
import { TARGET } from "../throughput/paths.ts";
import { routedScript } from "../throughput/topology.ts";
import { CLIENTS, FIRST_GATEWAY, GATEWAYS, PICKING, SERVED, SERVICE } from "./ends.ts";

const SERVICE_NAME = "Service";
const PINGS = 200;
const SETUP_TIMEOUT_MS = 1_800_000;

/** What is measured of a client, and what Agent selection has to come to, as a part of Service selection. */
interface Figure {
  readonly name: string;
  readonly unit: Series["unit"];
  readonly limit: Limit;
  readonly take: (machine: VirtualMachine, netns: string, target: string, folder: string) => Promise<number>;
}

const FIGURES: readonly Figure[] = [
  { name: "TCP", unit: "Mbit/s", limit: { atLeast: 0.98 }, take: tcpThroughput },
  { name: "small packets", unit: "per s", limit: { atLeast: 0.98 }, take: smallPackets },
  {
    ...{ name: "round trip", unit: "ms", limit: { atMost: 1.02 } },
    take: async (machine, netns, target) => {
      const output = await machine.run(inside(netns, `ping -q -c ${PINGS} -i 0.002 ${target}`));
      return Number(/^rtt min\/avg\/max\/mdev = [\d.]+\/([\d.]+)\//m.exec(output)?.[1]);
    },
  },
  {
    ...{ name: "new connections", unit: "per s", limit: { atLeast: 0.9 } },
    take: async (machine, netns, target, folder) =>
      Number(await machine.run(inside(netns, `python3 ${folder}/connections.py ${target}`))),
  },
];

/**
 * What a flow costs whose gateway the client itself has picked among many, beside one to the Service of a gateway, whose
 * address the node translates. The machine's own clock counts.
 */
export async function benchPinning(rounds: number): Promise<Report> {
  await needCommands(["iperf3", "ping", "python3"]);
  return withMachine({ cpus: 1, countsInstructions: true }, async (machine, folder) => {
    await bundleProgram(join(import.meta.dirname, "data-path.ts"), join(folder, "data-path"));
    await copyFile(join(import.meta.dirname, "connections.py"), join(folder, "connections.py"));
    await machine.run(routedScript([...CLIENTS, ...GATEWAYS]));
    await machine.run(serviceScript(folder));
    progress(`${GATEWAYS.length} gateways and ${CLIENTS.length} clients are made`);
    await machine.run(["node", join(folder, "data-path/main.js")], { timeoutMs: SETUP_TIMEOUT_MS });
    const findings: Findings[] = [];
    for (const figure of FIGURES) {
      for (const family of FAMILIES) findings.push(await measure(machine, folder, rounds, figure, family));
    }
    return {
      bench: "pinning",
      setup: `flows of clients that pick among gateways, and to a gateway's Service, in a virtual machine of one processor`,
      ...joined(findings),
    };
  });
}

async function measure(
  machine: VirtualMachine,
  folder: string,
  rounds: number,
  { name, unit, limit, take }: Figure,
  family: Family,
): Promise<Findings> {
  const what = `${name}, ${family === "ipv4" ? "IPv4" : "IPv6"}`;
  progress(what);
  const clients = [{ ...SERVED, name: SERVICE_NAME }, ...PICKING];
  const takers = clients.map(({ name, netns }) => [name, () => take(machine, netns, TARGET[family], folder)]);
  const samples: Record<string, Samples> = await interleave(rounds, Object.fromEntries(takers));
  const seriesOf = (client: string): Series => ({
    ...{ name: `${what}: ${client}`, unit, samples: samples[client] ?? [] },
  });
  const service = seriesOf(SERVICE_NAME);
  const picking = PICKING.map(({ name }) => seriesOf(name));
  return {
    series: [service, ...picking],
    targets: picking.map((each) => ratioOfPairs(`${each.name} / ${SERVICE_NAME}`, each, service, limit)),
  };
}

/** The router is the node: it translates the Service's address as kube-proxy has it do, and the target takes connections. */
function serviceScript(folder: string): string {
  const { ipv4, ipv6 } = FIRST_GATEWAY;
  return `
    ip netns exec router nft -f - <<'RULES'
    table inet services {
      chain prerouting {
        type nat hook prerouting priority dstnat
        ip daddr ${SERVICE.ipv4} udp dport ${FOU_PORT} dnat ip to ${ipv4}:${FOU_PORT}
        ip6 daddr ${SERVICE.ipv6} udp dport ${FOU_PORT} dnat ip6 to [${ipv6}]:${FOU_PORT}
      }
    }
RULES
    nohup ip netns exec target python3 ${folder}/connections.py serve >/dev/null 2>&1 </dev/null &
  `;
}

function inside(netns: string, command: string): string {
  return `ip netns exec ${netns} ${command}`;
}
