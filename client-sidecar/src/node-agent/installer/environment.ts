import { z } from "zod";

/** The node's CNI directories, as this container sees them. */
export const NodeDirectories = z.object({
  CNI_BIN_DIR: z.string().describe("the node's directory of CNI plugins, mounted: /host/opt/cni/bin"),
  CNI_CONF_DIR: z
    .string()
    .describe("the node's directory of CNI configurations, mounted: /host/etc/cni/net.d"),
});
