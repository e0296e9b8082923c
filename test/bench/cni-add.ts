import { spawnSync } from "node:child_process";
import { buildPrograms, PLUGIN_EXECUTABLE } from "../build/index.ts";
import { needCommands } from "../system/debian-packages.ts";
import type { Report } from "./report.ts";
import { interleave, summarize } from "./samples.ts";

/** An upstream plugin in Go; VERSION is a command that does nothing. */
const UPSTREAM_PLUGIN = "/usr/lib/cni/loopback";

const LIMIT = 5;

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
 * The ADD of a pod that is no client, beside a Go plugin that does nothing. What every process costs, that of
 * /bin/true, is taken off both: it would only flatter the ratio.
 */
export async function benchCniAdd(rounds: number): Promise<Report> {
  await needCommands([], { [UPSTREAM_PLUGIN]: "containernetworking-plugins" });
  await buildPrograms();
  const { shim, upstream, nothing } = await interleave(rounds, {
    shim: async () => timeOf(PLUGIN_EXECUTABLE, "ADD"),
    upstream: async () => timeOf(UPSTREAM_PLUGIN, "VERSION"),
    nothing: async () => timeOf("/bin/true", "VERSION"),
  });
  const start = summarize(nothing).median;
  return {
    bench: "cni-add",
    setup: "one exec of each in turn, on this machine",
    series: [
      { name: "egress-nat ADD, pod is no client", unit: "ms", samples: shim },
      { name: "loopback VERSION (Go)", unit: "ms", samples: upstream },
      { name: "/bin/true", unit: "ms", samples: nothing },
    ],
    targets: [
      {
        name: "ADD / Go plugin, less /bin/true",
        value: (summarize(shim).median - start) / (summarize(upstream).median - start),
        limit: LIMIT,
        reached: "at most",
      },
    ],
  };
}

function timeOf(file: string, command: "ADD" | "VERSION"): number {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: "bench",
    CNI_NETNS: "/run/netns/bench",
    CNI_IFNAME: "eth0",
    CNI_PATH: "/usr/lib/cni",
    CNI_ARGS: "K8S_POD_NAMESPACE=default;K8S_POD_NAME=bench;K8S_POD_UID=1",
  };
  const startedAt = performance.now();
  const { status, error, stdout } = spawnSync(file, [], { input: CONFIGURATION, env, encoding: "utf8" });
  const durationMs = performance.now() - startedAt;
  if (status !== 0) throw new Error(`${file} failed: ${stdout || error?.message}`, { cause: error });
  return durationMs;
}
