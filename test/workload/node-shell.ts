import type { ProbePod } from "./probe-pod.ts";

/** Root on a node, by way of a privileged pod on the node's network; the node's files are under /host. */
export class NodeShell {
  readonly pod: ProbePod;

  constructor(pod: ProbePod) {
    this.pod = pod;
  }

  /** Runs a script on the node and returns what it printed. */
  run(script: string): Promise<string> {
    return this.pod.run("bash", "-euo", "pipefail", "-c", script);
  }

  /** Runs a script in the network namespace of the pod with an address. */
  inNetworkOf(address: string, script: string): Promise<string> {
    return this.run(`
      for netns in /host/run/netns/*; do
        if nsenter --net="$netns" ip -oneline address show | grep -F ' ${address}/' >/dev/null; then
          nsenter --net="$netns" bash -euo pipefail <<'SCRIPT'
${script}
SCRIPT
          exit
        fi
      done
      echo "no pod on this node has the address ${address}" >&2
      exit 1`);
  }
}

export function nodeShellName(node: string): string {
  return `shell-${node}`;
}
