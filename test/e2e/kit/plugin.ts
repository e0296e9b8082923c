import { CAST } from "./cast.ts";
import { nodeOf, player } from "./world.ts";

export const INSTALLED = "last in the conflist, executable";
export const REMOVED = "not in the conflist, no executable";

/** What each node's CNI folders hold of the product. */
export async function pluginOnNodes(): Promise<string[]> {
  const players = await Promise.all([player(CAST.alice), player(CAST.bob)]);
  const nodes = await Promise.all(players.map(nodeOf));
  return Promise.all(
    nodes.map(async (node) =>
      (
        await node.run(`
          python3 - /host/etc/cni/net.d/*.conflist <<'PYTHON'
import json, os, sys
types = [plugin["type"] for plugin in json.load(open(sys.argv[1]))["plugins"]]
conflist = "last in" if types[-1] == "egress-nat" else "in" if "egress-nat" in types else "not in"
executable = "executable" if os.access("/host/opt/cni/bin/egress-nat", os.X_OK) else "no executable"
print(f"{conflist} the conflist, {executable}")
PYTHON`)
      ).trim(),
    ),
  );
}
