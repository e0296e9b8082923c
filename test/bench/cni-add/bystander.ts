import { buildPrograms, PLUGIN_EXECUTABLE } from "@egress-nat/tools/build";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { execa } from "execa";
import { type Findings, milliseconds, ratioOf } from "../report.ts";
import { interleave } from "../samples.ts";

/** An upstream plugin in Go that stands in chains as this one does; without a setting it changes nothing. */
const UPSTREAM_PLUGIN = "/usr/lib/cni/tuning";

const LIMIT = { atMost: 0.5 };

const CONFIGURATION = JSON.stringify({
  cniVersion: "1.0.0",
  name: "bench",
  type: "bench",
  capabilities: { "io.kubernetes.cri.pod-annotations": true },
  runtimeConfig: { "io.kubernetes.cri.pod-annotations": { "example.com/team": "a" } },
  prevResult: {
    cniVersion: "1.0.0",
    interfaces: [{ name: "lo", sandbox: "/proc/self/ns/net" }],
    ips: [{ address: "10.244.1.2/24", gateway: "10.244.1.1", interface: 0 }],
  },
});

const ENVIRONMENT = {
  PATH: "/usr/bin",
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "bench",
  CNI_NETNS: "/proc/self/ns/net",
  CNI_IFNAME: "lo",
  CNI_PATH: "/usr/lib/cni",
  CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=bench;K8S_POD_UID=1",
};

/** Runs a command and says what it cost, in milliseconds of a processor: getrusage(2) has it to the microsecond. */
const COST = `
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdin=sys.stdin, stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(1000 * (used.ru_utime + used.ru_stime))`;

/** The ADD of a pod that is no client, on this machine, beside a Go plugin's and a program that does nothing. */
export async function measureBystander(rounds: number): Promise<Findings> {
  await needCommands(["python3", "strace"], { [UPSTREAM_PLUGIN]: "containernetworking-plugins" });
  await buildPrograms();
  const samples = await interleave(rounds, {
    plugin: () => costOf(PLUGIN_EXECUTABLE),
    upstream: () => costOf(UPSTREAM_PLUGIN),
    nothing: () => costOf("/bin/true"),
  });
  const plugin = milliseconds("CPU of egress-nat ADD, pod is no client", samples.plugin);
  const upstream = milliseconds("CPU of tuning ADD (Go)", samples.upstream);
  return {
    series: [plugin, upstream, milliseconds("CPU of /bin/true", samples.nothing)],
    targets: [
      ratioOf("no client: CPU of ADD / tuning ADD", plugin, upstream, LIMIT),
      { name: "no client: sockets opened by ADD", value: await socketsOpened(), limit: { atMost: 0 } },
    ],
  };
}

async function costOf(command: string): Promise<number> {
  return Number((await run("python3", ["-c", COST, command])).stdout);
}

async function socketsOpened(): Promise<number> {
  const options = ["-f", "-qq", "-e", "trace=socket,socketpair"];
  const { stderr } = await run("strace", [...options, PLUGIN_EXECUTABLE]);
  return stderr.split("\n").filter((line) => line.includes("socket")).length;
}

function run(file: string, args: readonly string[]) {
  return execa(file, args, { input: CONFIGURATION, env: ENVIRONMENT, extendEnv: false });
}
