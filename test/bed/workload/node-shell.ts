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
    return this.run(`${findNetns(address)}
      if [ -z "$found" ]; then
        echo "no pod on this node has the address ${address}" >&2
        exit 1
      fi
      nsenter --net="$found" bash -euo pipefail <<'SCRIPT'
${script}
SCRIPT`);
  }

  /** Whether a network namespace of the node has an address. */
  async hasPod(address: string): Promise<boolean> {
    return (await this.run(`${findNetns(address)}\n echo "$found"`)).trim() !== "";
  }
}

// A namespace may go while it is looked into.
function findNetns(address: string): string {
  return `
      found=
      for netns in /host/run/netns/*; do
        addresses=$(nsenter --net="$netns" ip -oneline address show 2>/dev/null) || continue
        if [[ $addresses == *' ${address}/'* ]]; then found=$netns; break; fi
      done`;
}

export function nodeShellName(node: string): string {
  return `shell-${node}`;
}
