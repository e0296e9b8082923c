/** `uninstall`: the DaemonSet that ends an installation, one pod per node. */

import { once } from "node:events";
import { join } from "node:path";
import { AGENT_SOCKET, CNI_PLUGIN, HEALTH_PORTS, RUN_DIRECTORY, STATE_DIRECTORY } from "@egress-nat/crds";
import { createRegistry, HealthServer, type ProgramContext, parseEnvironment } from "@egress-nat/program";
import { NodeDirectories } from "../environment.ts";
import { ConfigurationDirectory } from "./configuration-directory.ts";
import { uninstall } from "./uninstall.ts";

/** Where the node's /run and /var/lib are mounted: a directory that is itself a mount point could not be removed. */
const HOST = "/host";

/**
 * Removes the plugin, and then stays, ready, until it is ended: whoever uninstalls waits until the DaemonSet is
 * ready on every node. The health port is the agent's: it is free when the agent is gone.
 */
export async function runUninstall({ signal, logger }: ProgramContext): Promise<void> {
  const { CNI_BIN_DIR, CNI_CONF_DIR } = parseEnvironment(NodeDirectories);
  await uninstall(
    {
      socketPath: join(HOST, AGENT_SOCKET),
      configuration: new ConfigurationDirectory(CNI_CONF_DIR),
      binaryPath: join(CNI_BIN_DIR, CNI_PLUGIN),
      stateDirectories: [join(HOST, RUN_DIRECTORY), join(HOST, STATE_DIRECTORY)],
      logger,
    },
    signal,
  );
  const health = new HealthServer({
    port: HEALTH_PORTS.nodeAgent,
    logger,
    registry: createRegistry(),
    ready: () => ({ ok: true, reasons: [] }),
  });
  await health.start();
  if (!signal.aborted) await once(signal, "abort");
  await health.close();
}
