import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { bundleProgram } from "../../build/bundle.ts";
import type { VirtualMachine } from "../../vm/virtual-machine.ts";
import { withMachine } from "../machine.ts";
import type { Report } from "../report.ts";
import { interleave, summarize } from "../samples.ts";
import { address } from "./slices.ts";

const MANY = { slices: 100, clientsPerSlice: 100 };
const FEW = { slices: 1, clientsPerSlice: 10 };
const LINKS = 1000;
const ONE_MORE_ROUNDS = 11;
const ONE_MORE_LIMIT = 3;

const Intake = z.object({
  processStartMs: z.number(),
  intakeMs: z.number(),
  oneMoreMs: z.array(z.number()),
});
type Intake = z.infer<typeof Intake>;

/** A gateway takes in 10,000 clients, beside 1,000 links made by hand, each with a route, for as many peers. */
export function benchClients(rounds: number): Promise<Report> {
  return withMachine(async (machine, folder) => {
    await bundleProgram(join(import.meta.dirname, "intake.ts"), join(folder, "intake"));
    await writeFile(join(folder, "links.batch"), linksByHand());
    const many: Intake[] = [];
    const { gateway, links } = await interleave(rounds, {
      gateway: async () => {
        const intake = await takeIn(machine, folder, MANY);
        many.push(intake);
        return intake.intakeMs;
      },
      links: () => makeLinks(machine, folder),
    });
    const few = await takeIn(machine, folder, FEW);
    const oneMoreAtMany = many.flatMap(({ oneMoreMs }) => oneMoreMs);
    return {
      bench: "clients",
      setup: "in a virtual machine, from the first byte of the list to the committed rule set",
      series: [
        { name: "gateway takes in 10,000 clients", unit: "ms", samples: gateway },
        { name: "1,000 links by hand", unit: "ms", samples: links },
        { name: "one more client at 10,000", unit: "ms", samples: oneMoreAtMany },
        { name: "one more client at 10", unit: "ms", samples: few.oneMoreMs },
        {
          name: "start of the process",
          unit: "ms",
          samples: many.map(({ processStartMs }) => processStartMs),
        },
      ],
      targets: [
        {
          name: "10,000 clients / 1,000 links by hand",
          value: summarize(gateway).median / summarize(links).median,
          limit: 1,
          reached: "at most",
        },
        {
          name: "one more at 10,000 / one more at 10",
          value: summarize(oneMoreAtMany).median / summarize(few.oneMoreMs).median,
          limit: ONE_MORE_LIMIT,
          reached: "at most",
        },
      ],
    };
  });
}

const IN_NEW_NETNS = `
set -e
ip netns add gateway
trap 'ip netns del gateway' EXIT
ip netns exec gateway ip link set lo up
ip -n gateway link add eth0 type veth peer name peer
ip -n gateway link set peer up
ip -n gateway link set eth0 up
ip -n gateway addr add 10.9.0.2/16 dev eth0
ip -n gateway route add default via 10.9.0.1
`;

async function takeIn(machine: VirtualMachine, folder: string, size: typeof MANY): Promise<Intake> {
  const program = `${folder}/intake/main.js ${size.slices} ${size.clientsPerSlice} ${ONE_MORE_ROUNDS}`;
  const output = await machine.run(`${IN_NEW_NETNS}\nip netns exec gateway node ${program}`, {
    timeoutMs: 300_000,
  });
  return Intake.parse(JSON.parse(output));
}

async function makeLinks(machine: VirtualMachine, folder: string): Promise<number> {
  const output = await machine.run(
    `${IN_NEW_NETNS}
    ip netns exec gateway ip fou add port 5555 ipproto 4
    started=$EPOCHREALTIME
    ip -n gateway -batch ${folder}/links.batch
    ended=$EPOCHREALTIME
    # The end of a namespace takes its links down after everybody has stopped to wait for it.
    ip -n gateway link del group 7
    echo $(( (\${ended/./} - \${started/./}) ))`,
    { timeoutMs: 300_000 },
  );
  return Number(output) / 1000;
}

function linksByHand(): string {
  const lines = Array.from({ length: LINKS }, (_, index) => {
    const peer = address(Math.floor(index / 100), index % 100);
    return [
      `link add fou_${index} group 7 type ipip remote ${peer} local 10.9.0.2 ttl 225 encap fou encap-sport 5555 encap-dport 5555`,
      `link set fou_${index} up`,
      `route add ${peer} dev fou_${index} table 118`,
    ];
  });
  return `${lines.flat().join("\n")}\n`;
}
