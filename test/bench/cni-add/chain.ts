import { z } from "zod";
import type { ClusterNode } from "../../bed/cluster/node.ts";
import { CNI_CONFLIST } from "../../bed/cluster/node-files.ts";

const ConfigurationList = z.object({
  cniVersion: z.string(),
  name: z.string(),
  plugins: z.array(z.looseObject({ type: z.string() })).min(1),
});
type ConfigurationList = z.infer<typeof ConfigurationList>;

/** A pod as a container runtime names it to plugins. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** How long each plugin's ADD took, in milliseconds. */
export interface AddTimes {
  readonly bridge: number;
  readonly client: number;
}

/** The first and the last plugin of a node's CNI configuration, run as the node's container runtime runs them. */
export class Chain {
  readonly #node: ClusterNode;
  readonly #configuration: ConfigurationList;
  #sandboxes = 0;

  private constructor(node: ClusterNode, configuration: ConfigurationList) {
    this.#node = node;
    this.#configuration = configuration;
  }

  static async of(node: ClusterNode): Promise<Chain> {
    await node.run(`mkdir ${FOLDER} && cp /opt/cni/bin/* ${FOLDER}`);
    const text = await node.run(["cat", CNI_CONFLIST]);
    return new Chain(node, ConfigurationList.parse(JSON.parse(text)));
  }

  /** Makes a network namespace, adds a pod to the network, one plugin after the other, and takes it all away again. */
  async addAndDelete({ namespace, name, uid, annotations }: Pod): Promise<AddTimes> {
    this.#sandboxes += 1;
    const sandbox = `bench${this.#sandboxes}`;
    const output = await this.#node.run(ADD_AND_DELETE, {
      env: {
        CNI_CONTAINERID: sandbox,
        CNI_NETNS: `/run/netns/${sandbox}`,
        CNI_IFNAME: "eth0",
        CNI_PATH: FOLDER,
        CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name};K8S_POD_UID=${uid}`,
        BRIDGE: this.#configurationOf("bridge", annotations),
        CLIENT: this.#configurationOf("egress-nat", annotations),
      },
    });
    const [bridge = Number.NaN, client = Number.NaN] = output.split("\n").map((line) => Number(line) / 1000);
    return { bridge, client };
  }

  #configurationOf(type: string, annotations: Pod["annotations"]): string {
    const { cniVersion, name, plugins } = this.#configuration;
    const plugin = plugins.find((candidate) => candidate.type === type);
    const runtimeConfig = { "io.kubernetes.cri.pod-annotations": annotations };
    return JSON.stringify({ cniVersion, name, ...plugin, runtimeConfig });
  }
}

/** A tmpfs: neither reading nor writing waits for an emulated disk. */
const FOLDER = "/run/bench";

/** Prints microseconds, from fork to exit of each ADD. */
const ADD_AND_DELETE = `
set -eu
execute() { # PLUGIN CONFIGURATION
  "$CNI_PATH/$1" <<<"$2" >"$CNI_PATH/result" || { cat "$CNI_PATH/result" >&2; exit 1; }
}
timed() {
  local started=$EPOCHREALTIME
  execute "$@"
  local ended=$EPOCHREALTIME
  echo $((\${ended/./} - \${started/./}))
}
ip netns add "$CNI_CONTAINERID"
trap 'ip netns del "$CNI_CONTAINERID"' EXIT
export CNI_COMMAND=ADD
timed bridge "$BRIDGE"
CLIENT="{\\"prevResult\\":$(<"$CNI_PATH/result"),\${CLIENT#?}"
timed egress-nat "$CLIENT"
CNI_COMMAND=DEL
execute egress-nat "$CLIENT"
execute bridge "$BRIDGE"
`;
