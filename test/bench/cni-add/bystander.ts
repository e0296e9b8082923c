import { spawnSync } from "node:child_process";
import { buildPrograms, PLUGIN_EXECUTABLE } from "../../build/index.ts";
import { needCommands } from "../../system/debian-packages.ts";
import { type Findings, milliseconds } from "../report.ts";
import { interleave, summarize } from "../samples.ts";

/** An upstream plugin in Go; VERSION is a command that does nothing. */
const UPSTREAM_PLUGIN = "/usr/lib/cni/loopback";

const LIMIT = { atMost: 5 };

const CONFIGURATION = JSON.stringify({
  cniVersion: "1.0.0",
  name: "bench",
  type: "egress-nat",
  capabilities: { "io.kubernetes.cri.pod-annotations": true },
  runtimeConfig: { "io.kubernetes.cri.pod-annotations": { "example.com/team": "a" } },
  prevResult: {
    cniVersion: "1.0.0",
    interfaces: [{ name: "eth0", sandbox: "/run/netns/bench" }],
    ips: [{ address: "10.244.1.2/24", gateway: "10.244.1.1", interface: 0 }],
  },
});

/**
 * The ADD of a pod that is no client, on this machine, beside a Go plugin that does nothing. What every process costs,
 * that of /bin/true, is taken off both: it would only flatter the ratio.
 */
export async function measureBystander(rounds: number): Promise<Findings> {
  await needCommands(["strace"], { [UPSTREAM_PLUGIN]: "containernetworking-plugins" });
  await buildPrograms();
  const samples = await interleave(rounds, {
    plugin: async () => timeOf([PLUGIN_EXECUTABLE], "ADD"),
    upstream: async () => timeOf([UPSTREAM_PLUGIN], "VERSION"),
    nothing: async () => timeOf(["/bin/true"], "VERSION"),
  });
  const start = summarize(samples.nothing).median;
  const sockets = socketsOpened();
  return {
    series: [
      milliseconds("egress-nat ADD, pod is no client", samples.plugin),
      milliseconds("loopback VERSION (Go)", samples.upstream),
      milliseconds("/bin/true", samples.nothing),
    ],
    targets: [
      {
        name: "no client: ADD / Go plugin, less /bin/true",
        value: (summarize(samples.plugin).median - start) / (summarize(samples.upstream).median - start),
        limit: LIMIT,
      },
      { name: "no client: sockets opened by ADD", value: sockets, limit: { atMost: 0 } },
    ],
  };
}

function timeOf(command: readonly string[], cniCommand: CniCommand): number {
  const startedAt = performance.now();
  run(command, cniCommand);
  return performance.now() - startedAt;
}

function socketsOpened(): number {
  const trace = run(["strace", "-f", "-qq", "-e", "trace=socket,socketpair", PLUGIN_EXECUTABLE], "ADD");
  return trace.split("\n").filter((line) => line.includes("socket")).length;
}

type CniCommand = "ADD" | "VERSION";

/** @returns what it wrote to stderr */
function run([file = "", ...args]: readonly string[], cniCommand: CniCommand): string {
  const env = {
    PATH: "/usr/bin",
    CNI_COMMAND: cniCommand,
    CNI_CONTAINERID: "bench",
    CNI_NETNS: "/run/netns/bench",
    CNI_IFNAME: "eth0",
    CNI_PATH: "/usr/lib/cni",
    CNI_ARGS: "K8S_POD_NAMESPACE=default;K8S_POD_NAME=bench;K8S_POD_UID=1",
  };
  const { status, error, stdout, stderr } = spawnSync(file, args, {
    input: CONFIGURATION,
    env,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${file} failed: ${stdout || error?.message}`, { cause: error });
  return stderr;
}
