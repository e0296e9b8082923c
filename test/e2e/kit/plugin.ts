import { CAST } from "./cast.ts";
import { nodeOf, player } from "./world.ts";

export const INSTALLED = "last in the conflist, executable";
export const REMOVED = "not in the conflist, no executable";

/** Whether the product's plugin is in use on each node. */
export function pluginOnNodes(): Promise<string[]> {
  return onNodes(`
          python3 - /host/etc/cni/net.d/*.conflist <<'PYTHON'
import json, os, sys
types = [plugin["type"] for plugin in json.load(open(sys.argv[1]))["plugins"]]
conflist = "last in" if types[-1] == "egress-nat" else "in" if "egress-nat" in types else "not in"
executable = "executable" if os.access("/host/opt/cni/bin/egress-nat", os.X_OK) else "no executable"
print(f"{conflist} the conflist, {executable}")
PYTHON`);
}

/** The files and folders on all nodes that have the product's name, in the folders where the product has any. */
export async function filesOnNodes(): Promise<string[]> {
  const folders = ["/etc/cni/net.d", "/opt/cni/bin", "/run", "/var/lib"].map((folder) => `/host${folder}`);
  const lists = await onNodes(`find ${folders.join(" ")} -maxdepth 1 -name '*egress-nat*'`);
  return lists.flatMap((list) => list.split("\n").filter((file) => file !== ""));
}

async function onNodes(script: string): Promise<string[]> {
  const players = await Promise.all([player(CAST.alice), player(CAST.bob)]);
  const nodes = await Promise.all(players.map(nodeOf));
  return Promise.all(nodes.map(async (node) => (await node.run(script)).trim()));
}
