import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { GatewayBackend } from "@egress-nat/founat";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { z } from "zod";
import type { VirtualMachine } from "../../bed/vm/virtual-machine.ts";
import { compareBackends } from "../backends.ts";
import { withMachine } from "../machine.ts";
import { type Findings, milliseconds, type Report, ratioOf } from "../report.ts";
import { interleave } from "../samples.ts";
import { address } from "./slices.ts";

const MANY = { slices: 100, clientsPerSlice: 100 };
const FEW = { slices: 1, clientsPerSlice: 10 };
const LINKS = 1000;
const ONE_MORE_ROUNDS = 11;
const INTAKE_LIMIT = { atMost: 1 };
const ONE_MORE_LIMIT = { atMost: 3 };

const Intake = z.object({
  processStartMs: z.number(),
  intakeMs: z.number(),
  oneMoreMs: z.array(z.number()),
});
type Intake = z.infer<typeof Intake>;

/**
 * A gateway takes in 10,000 clients, beside 1,000 links made by hand, each with a route, for as many peers. It prepares
 * the kernel while the clients arrive, which one processor alone does not show.
 */
export function benchClients(rounds: number, backend: GatewayBackend): Promise<Report> {
  return withMachine({ cpus: 2, emulatesAllCpus: true }, async (machine, folder) => {
    await machine.run(HOLD_HOOKS);
    await bundleProgram(join(import.meta.dirname, "intake.ts"), join(folder, "intake"));
    const measured = backend === "iptables" ? iptablesBesideNftables : gatewayBesideLinks;
    return {
      bench: "clients",
      setup: "in a virtual machine, from the first byte of the list to the committed rule set",
      ...(await measured(machine, folder, rounds)),
    };
  });
}

async function gatewayBesideLinks(
  machine: VirtualMachine,
  folder: string,
  rounds: number,
): Promise<Findings> {
  await writeFile(join(folder, "links.batch"), linksByHand());
  const many: Intake[] = [];
  const few: Intake[] = [];
  const takingIn = (size: typeof MANY, intakes: Intake[]) => async (): Promise<number> => {
    const intake = await takeIn(machine, folder, size, "nftables");
    intakes.push(intake);
    return intake.intakeMs;
  };
  const { gateway, links } = await interleave(rounds, {
    gateway: takingIn(MANY, many),
    links: () => makeLinks(machine, folder),
    fewClients: takingIn(FEW, few),
  });
  const series = {
    gateway: milliseconds("gateway takes in 10,000 clients", gateway),
    links: milliseconds("1,000 links by hand", links),
    atMany: milliseconds(
      "one more client at 10,000",
      many.flatMap(({ oneMoreMs }) => oneMoreMs),
    ),
    atFew: milliseconds(
      "one more client at 10",
      few.flatMap(({ oneMoreMs }) => oneMoreMs),
    ),
    start: milliseconds(
      "start of the process",
      many.map(({ processStartMs }) => processStartMs),
    ),
  };
  return {
    series: Object.values(series),
    targets: [
      ratioOf("10,000 clients / 1,000 links by hand", series.gateway, series.links, INTAKE_LIMIT),
      ratioOf("one more at 10,000 / one more at 10", series.atMany, series.atFew, ONE_MORE_LIMIT),
    ],
  };
}

async function iptablesBesideNftables(
  machine: VirtualMachine,
  folder: string,
  rounds: number,
): Promise<Findings> {
  return compareBackends(async (clients) => {
    const clientsPerSlice = Math.min(clients, MANY.clientsPerSlice);
    const size = { slices: clients / clientsPerSlice, clientsPerSlice };
    const oneMore: Record<GatewayBackend, number[]> = { nftables: [], iptables: [] };
    const takingIn = (backend: GatewayBackend) => async (): Promise<number> => {
      const { intakeMs, oneMoreMs } = await takeIn(machine, folder, size, backend);
      oneMore[backend].push(...oneMoreMs);
      return intakeMs;
    };
    const intake = await interleave(rounds, {
      nftables: takingIn("nftables"),
      iptables: takingIn("iptables"),
    });
    return [
      { name: "a gateway takes in its clients", unit: "ms", samples: intake },
      { name: "one more client", unit: "ms", samples: oneMore },
    ];
  });
}

/** Elsewhere rule sets come and go, and the kernel would patch its code for the first and the last of them. */
const HOLD_HOOKS = `
nft -f - <<end
table inet held {
  chain prerouting { type filter hook prerouting priority 0; }
  chain input { type filter hook input priority 0; }
  chain forward { type filter hook forward priority 0; }
  chain output { type filter hook output priority 0; }
  chain postrouting { type filter hook postrouting priority 0; }
}
table netdev held {
  chain ingress { type filter hook ingress device "lo" priority 0; }
}
end
tc qdisc add dev lo clsact
`;

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

async function takeIn(
  machine: VirtualMachine,
  folder: string,
  { slices, clientsPerSlice }: typeof MANY,
  backend: GatewayBackend,
): Promise<Intake> {
  const program = `${folder}/intake/main.js ${backend} ${slices} ${clientsPerSlice} ${ONE_MORE_ROUNDS}`;
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
