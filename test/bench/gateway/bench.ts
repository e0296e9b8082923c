import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { FAMILIES, type Family } from "@egress-nat/addresses";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import type { VirtualMachine } from "../../bed/vm/virtual-machine.ts";
import { FOU_PORT } from "../egress.ts";
import { withMachine } from "../machine.ts";
import { progress } from "../progress.ts";
import { type Findings, joined, type Report, ratioOfPairs, type Series } from "../report.ts";
import { interleave, type Samples } from "../samples.ts";
import { TARGET } from "../throughput/paths.ts";
import { clientOf, gatewayOf, otherClient, type Way, waysScript } from "./topology.ts";

const CLIENT_COUNTS = [1, 100, 1_000] as const;
const SETUP_TIMEOUT_MS = 600_000;

/** The product is to be ahead. */
const LIMIT = { atMost: 1 };

const NAMES = {
  plain: "forwarded and masqueraded",
  hand: "a link and a route for each client, by hand",
  product: "egress-nat",
} as const;

/**
 * What a gateway costs for each packet that it forwards: the time of a round trip less that of one without a gateway. The
 * client puts packets into the tunnel by hand, so that the gateway is all that differs. The machine's own clock counts.
 */
export async function benchGateway(rounds: number): Promise<Report> {
  await needCommands(["iperf3", "python3"]);
  return withMachine({ cpus: 1, countsInstructions: true }, async (machine, folder) => {
    await bundleProgram(join(import.meta.dirname, "data-path.ts"), join(folder, "data-path"));
    await copyFile(join(import.meta.dirname, "round_trips.py"), join(folder, "round_trips.py"));
    await machine.run(waysScript(folder));
    const findings: Findings[] = [];
    let linked = 0;
    for (const clients of CLIENT_COUNTS) {
      progress(`${clients} clients`);
      await machine.run(["node", join(folder, "data-path/main.js"), `${clients}`], {
        timeoutMs: SETUP_TIMEOUT_MS,
      });
      await machine.run(["ip", "-n", gatewayOf("hand").netns, "-batch", "-"], {
        ...{ input: linksByHand(linked, clients), timeoutMs: SETUP_TIMEOUT_MS },
      });
      linked = clients;
      for (const family of FAMILIES) findings.push(await measure(machine, folder, rounds, family, clients));
    }
    return {
      bench: "gateway",
      setup: "what a gateway adds to a round trip of UDP, in a virtual machine of one processor",
      ...joined(findings),
    };
  });
}

async function measure(
  machine: VirtualMachine,
  folder: string,
  rounds: number,
  family: Family,
  clients: number,
): Promise<Findings> {
  const roundTrip = (way: Way) => () => askBy(machine, folder, way, family);
  const samples = await interleave(rounds, {
    direct: roundTrip("direct"),
    plain: roundTrip("plain"),
    hand: roundTrip("hand"),
    product: roundTrip("product"),
  });
  const label = `${family === "ipv4" ? "IPv4" : "IPv6"}, ${clients === 1 ? "1 client" : `${clients.toLocaleString("en")} clients`}`;
  const added = (way: keyof typeof NAMES): Series => ({
    ...{ name: `${label}: ${NAMES[way]}`, unit: "µs" },
    samples: difference(samples[way], samples.direct),
  });
  const [plain, hand, product] = [added("plain"), added("hand"), added("product")];
  return {
    series: [plain, hand, product],
    targets: [
      ratioOfPairs(`${label}: egress-nat / by hand`, product, hand, LIMIT),
      ratioOfPairs(`${label}: egress-nat / forwarded`, product, plain),
      ratioOfPairs(`${label}: by hand / forwarded`, hand, plain),
    ],
  };
}

async function askBy(machine: VirtualMachine, folder: string, way: Way, family: Family): Promise<number> {
  const tunnel = way === "hand" || way === "product" ? gatewayOf(way)[family] : "";
  const client = clientOf(way);
  const asked = `ask ${family} ${client[family]} ${TARGET[family]} ${tunnel}`;
  return Number(await machine.run(`ip netns exec ${client.netns} python3 ${folder}/round_trips.py ${asked}`));
}

function difference(samples: Samples, others: Samples): Samples {
  return samples.map((sample, index) => sample - (others[index] ?? Number.NaN));
}

/** Those of clients `from` to `to`, the first of which is there. */
function linksByHand(from: number, to: number): string {
  const encap = `encap fou encap-sport ${FOU_PORT} encap-dport ${FOU_PORT}`;
  const { ipv4, ipv6 } = gatewayOf("hand");
  const clients = Array.from({ length: to - from }, (_, index) => from + index).map((index) => ({
    index,
    ...(index === 0 ? clientOf("hand") : otherClient(index)),
  }));
  return clients
    .flatMap((client) => [
      `link add peer4_${client.index} type ipip local ${ipv4} remote ${client.ipv4} ttl 225 ${encap}`,
      `link add peer6_${client.index} type ip6tnl mode ip6ip6 local ${ipv6} remote ${client.ipv6} encaplimit none ttl 225 ${encap}`,
      `link set peer4_${client.index} up`,
      `link set peer6_${client.index} up`,
      `route add ${client.ipv4} dev peer4_${client.index} table 118`,
      `route add ${client.ipv6} dev peer6_${client.index} table 118`,
    ])
    .map((line) => `${line}\n`)
    .join("");
}
