import type { GatewayBackend } from "@egress-nat/founat";
import { runCommand } from "@egress-nat/tools/system/run-command";
import { Command, InvalidArgumentError, Option } from "commander";
import { interruptible } from "./cleanup.ts";
import { benchClients } from "./clients/bench.ts";
import { benchCniAdd } from "./cni-add/bench.ts";
import { benchDrift } from "./drift/bench.ts";
import { benchFailover } from "./failover/bench.ts";
import { benchGateway } from "./gateway/bench.ts";
import { benchHeartbeat } from "./heartbeat/bench.ts";
import { benchMemory } from "./memory/bench.ts";
import { benchOperator } from "./operator/bench.ts";
import { commitOfCheckout, describeMachine } from "./origin.ts";
import { benchPinning } from "./pinning/bench.ts";
import { formatReport, isReached, type Report, reportJson } from "./report.ts";
import { benchRevocation } from "./revocation/bench.ts";
import { benchSelection } from "./selection/bench.ts";
import { benchThroughput } from "./throughput/bench.ts";

// npm run bench -- NAME [--json]: each benchmark compares the product with what it replaces, in one run.
const program = new Command("npm run bench --")
  .description("Measures how fast egress-nat is compared with what it replaces, as ratios of medians.")
  .option("--json", "print the report as JSON, with all samples");

function bench(
  name: string,
  description: string,
  rounds: number,
  run: (rounds: number, backend: GatewayBackend) => Promise<Report>,
  options: readonly Option[] = [],
): void {
  const command = program
    .command(name)
    .description(description)
    .option("--rounds <count>", "how many samples of each to take", positiveInteger, rounds)
    .action(async (given: { rounds: number; backend: GatewayBackend }) => {
      const { json } = program.opts<{ json?: boolean }>();
      const origin = json && { commit: await commitOfCheckout(), machine: describeMachine() };
      const report = await interruptible(() => run(given.rounds, given.backend));
      console.log(origin ? JSON.stringify(reportJson(report, origin), undefined, 2) : formatReport(report));
      if (!report.targets.every(isReached)) process.exitCode = 1;
    });
  for (const option of options) command.addOption(option);
}

function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("not a positive whole number");
  return value;
}

const BACKEND = new Option(
  "--backend <name>",
  "what the gateway filters with; iptables is measured in turn with nftables, at 1, 100 and 10,000 clients",
)
  .choices(["nftables", "iptables"])
  .default("nftables");

bench("cni-add", "what the CNI plugin costs pods that are not clients, and clients", 100, benchCniAdd);
bench("clients", "how fast a gateway adds 10,000 clients, and one more", 5, benchClients, [BACKEND]);
bench("throughput", "TCP through the tunnel and NAT, compared with links made by hand", 10, benchThroughput, [
  BACKEND,
]);
bench("memory", "what the programs take, each alone and in large clusters", 5, benchMemory);
bench(
  "operator",
  "how fast the operator makes and changes what 1,000 Egresses are made of",
  3,
  benchOperator,
);

bench("drift", "what it costs a node to notice that another program changes its clients", 4, benchDrift);
bench(
  "revocation",
  "how long a client is still served after its namespace is no longer allowed",
  10,
  benchRevocation,
);

bench("heartbeat", "what it costs a gateway that 1,000 nodes ask whether it lives", 5, benchHeartbeat);
bench("selection", "how fast the clients of a node follow when a gateway comes or goes", 10, benchSelection);
bench(
  "failover",
  "how long it takes from the death of a gateway, or of its way out, until the clients of a node do without it",
  10,
  benchFailover,
);
bench(
  "gateway",
  "what a gateway costs for each packet, beside plain forwarding and a link for each client",
  5,
  benchGateway,
);
bench(
  "pinning",
  "what a flow costs whose gateway the client has picked, beside one to a gateway's Service",
  5,
  benchPinning,
);

await runCommand(program);
