import { delimiter, dirname, join } from "node:path";
import { buildPrograms, PLUGIN_EXECUTABLE } from "@egress-nat/tools/build";
import { goProgramAndTools } from "@egress-nat/tools/system/go-program";

/** What the tests of the CNI plugin run: the plugin as it is put on nodes, and what others wrote. */
export interface CniPrograms {
  /** The folder of upstream's plugins, of cnitool and of the driver. */
  readonly upstream: string;
  /** Executes a scenario through libcni or go-cni: driver/main.go. */
  readonly driver: string;
  readonly pluginFolders: readonly string[];
  /** The same, as CNI_PATH has them. */
  readonly path: string;
  /** Path of a plugin by its type. */
  readonly pluginOf: (type: string) => string;
}

/** Builds the product's plugin and upstream's programs, as far as they are not built. */
export async function cniPrograms(): Promise<CniPrograms> {
  await buildPrograms();
  const upstream = await goProgramAndTools({
    name: "cni-driver",
    folder: join(import.meta.dirname, "driver"),
  });
  const pluginFolders = [upstream, dirname(PLUGIN_EXECUTABLE)];
  return {
    upstream,
    driver: join(upstream, "driver"),
    pluginFolders,
    path: pluginFolders.join(delimiter),
    pluginOf: (type) => (type === "egress-nat" ? PLUGIN_EXECUTABLE : join(upstream, type)),
  };
}
