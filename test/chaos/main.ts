import { runCommand } from "@egress-nat/tools/system/run-command";
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { ProxyMode } from "../bed/cluster/plan.ts";
import { interruptible } from "../bench/cleanup.ts";
import { commitOfCheckout, describeNodes } from "../bench/origin.ts";
import { progress } from "../bench/progress.ts";
import { Course } from "./course.ts";
import { makeGround, removeGround, type Selection, withChaosCluster } from "./ground.ts";
import type { Load } from "./measure.ts";
import { formatMeasurement, isAllKept, type Measurement } from "./report.ts";
import { SCENARIOS } from "./scenarios.ts";

// npm run chaos -- NAME... [--json]: what becomes of flows while gateways, nodes and programs come to harm.
interface Options extends Load {
  readonly rounds: number;
  readonly hours?: number;
  readonly selection: Selection | "both";
  readonly proxyMode: ProxyMode;
  readonly json?: boolean;
}

const SELECTIONS = { Agent: ["Agent"], Service: ["Service"], both: ["Agent", "Service"] } as const;

const USUAL_PROXY_MODE: ProxyMode = "nftables";

const program = new Command("npm run chaos --")
  .description(
    "Measures on a real cluster what becomes of flows while gateways, nodes and programs come to harm, with each " +
      "gatewaySelection. The exit code is 1 if Agent selection does not keep what it must.",
  )
  .addArgument(new Argument("<name...>", "what is done, one after another").choices(Object.keys(SCENARIOS)))
  .option(
    "--flows <count>",
    "TCP flows that stay open, half of them idle for 90 s at a time",
    positiveInteger,
    200,
  )
  .option(
    "--rate <count>",
    "new TCP connections per second from each client to each of 2 addresses",
    positiveInteger,
    4,
  )
  .option("--rounds <count>", "how many times to do all of it", positiveInteger, 1)
  .addOption(
    new Option(
      "--hours <count>",
      "for how long to begin all of it again, with each selection, and to watch that programs do not grow",
    )
      .argParser(positiveNumber)
      .conflicts("rounds"),
  )
  .addOption(
    new Option("--selection <selection>", "who picks gateways")
      .choices(Object.keys(SELECTIONS))
      .default("both"),
  )
  .addOption(
    new Option("--proxy-mode <mode>", "how kube-proxy programs Services")
      .choices(ProxyMode.options)
      .default(USUAL_PROXY_MODE),
  )
  .option("--json", "print the report as JSON, with all rounds")
  .addHelpText("after", () => {
    const width = Math.max(...Object.keys(SCENARIOS).map((name) => name.length));
    const lines = Object.entries(SCENARIOS).map(
      ([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`,
    );
    return `\nNames:\n${lines.join("\n")}`;
  })
  .action(async (names: readonly string[], options: Options) => {
    const measurement = await measure(names, options);
    console.log(options.json ? JSON.stringify(measurement, undefined, 2) : formatMeasurement(measurement));
    if (!isAllKept(measurement)) process.exitCode = 1;
    // A scenario that was broken off may still wait for what does not come any more.
    process.exit();
  });

function positiveNumber(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value <= 0) throw new InvalidArgumentError("not a positive number");
  return value;
}

function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError("not a positive whole number");
  return value;
}

async function measure(names: readonly string[], options: Options): Promise<Measurement> {
  const { flows, rate, selection, proxyMode } = options;
  const [commit, machine] = await Promise.all([commitOfCheckout(), describeNodes()]);
  const courses: Course[] = [];
  const all = () =>
    withChaosCluster(proxyMode, async (cluster, kubectl) => {
      for (const each of SELECTIONS[selection]) {
        const ground = await makeGround(cluster, kubectl, each);
        const course = new Course(ground, names, options);
        courses.push(course);
        await course.run();
        await removeGround(ground);
      }
    });
  await interruptible(all).catch((err: unknown) => {
    if (courses.length === 0) throw err;
    // What is measured is worth more than the rest.
    progress(`broken off: ${String(err)}`);
    process.exitCode = 1;
  });
  const proxy = proxyMode === USUAL_PROXY_MODE ? "" : ` with kube-proxy in ${proxyMode} mode`;
  const setup =
    `3 nodes${proxy}, a gateway on each, sessionAffinity None; clients on 2 nodes, with ${flows} TCP flows and 4 UDP flows together, ` +
    `IPv4 and IPv6, and ${rate} new connections per second from each to each of 2 addresses`;
  const reports = courses.flatMap((course) => course.reports);
  const [{ holdings }] = courses as [Course];
  // Service selection has nothing to keep.
  const isWatched = holdings.length > 0 && selection !== "Service";
  return { commit, machine, setup, reports, ...(isWatched && { holdings: [...holdings] }) };
}

await runCommand(program);
