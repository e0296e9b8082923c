import { join } from "node:path";
import { z } from "zod";
import { bundleProgram } from "../../build/bundle.ts";
import type { VirtualMachine } from "../../vm/virtual-machine.ts";
import { withMachine } from "../machine.ts";
import type { Report } from "../report.ts";
import { interleave, summarize } from "../samples.ts";
import { clientOf, type Path, TARGET } from "./paths.ts";
import { topologyScript } from "./topology.ts";

const LIMIT = 0.95;

const SECONDS = 2;

const Iperf = z.object({ end: z.object({ sum_received: z.object({ bits_per_second: z.number() }) }) });

/** TCP through the product's tunnel and NAT, beside the same path made by hand. */
export function benchThroughput(rounds: number): Promise<Report> {
  return withMachine(async (machine, folder) => {
    await bundleProgram(join(import.meta.dirname, "data-path.ts"), join(folder, "data-path"));
    await machine.run(topologyScript());
    await machine.run(["node", join(folder, "data-path/main.js")]);
    const samples = await interleave(rounds, {
      product4: () => throughput(machine, "product", TARGET.ipv4),
      hand4: () => throughput(machine, "hand", TARGET.ipv4),
      product6: () => throughput(machine, "product", TARGET.ipv6),
      hand6: () => throughput(machine, "hand", TARGET.ipv6),
    });
    const ratio = (a: readonly number[], b: readonly number[]) => summarize(a).median / summarize(b).median;
    return {
      bench: "throughput",
      setup: `one TCP flow of ${SECONDS} s through tunnel and NAT, in a virtual machine`,
      series: [
        { name: "egress-nat, IPv4", unit: "Mbit/s", samples: samples.product4 },
        { name: "by hand, IPv4", unit: "Mbit/s", samples: samples.hand4 },
        { name: "egress-nat, IPv6", unit: "Mbit/s", samples: samples.product6 },
        { name: "by hand, IPv6", unit: "Mbit/s", samples: samples.hand6 },
      ],
      targets: [
        { name: "IPv4", value: ratio(samples.product4, samples.hand4), limit: LIMIT, reached: "at least" },
        { name: "IPv6", value: ratio(samples.product6, samples.hand6), limit: LIMIT, reached: "at least" },
      ],
    };
  });
}

async function throughput(machine: VirtualMachine, path: Path, target: string): Promise<number> {
  const output = await machine.run(
    `ip netns exec ${clientOf(path).netns} iperf3 --client ${target} --time ${SECONDS} --json`,
    { env: { TMPDIR: "/run" } },
  );
  return Iperf.parse(JSON.parse(output)).end.sum_received.bits_per_second / 1e6;
}
