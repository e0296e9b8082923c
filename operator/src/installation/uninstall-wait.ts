/** `uninstall-wait`: holds `helm uninstall` until the plugin is off every node. */

import { createTransport, loadCredentials, pause, type Transport } from "@egress-nat/kube";
import { type Logger, OwnPod, type ProgramContext, parseEnvironment } from "@egress-nat/program";
import { z } from "zod";
import { daemonSetProgress } from "./daemon-set.ts";

const POLL_MS = 500;

const Configuration = OwnPod.pick({ POD_NAMESPACE: true }).extend({
  DAEMON_SET: z.string().describe("name of the DaemonSet that takes the plugin off the nodes"),
});

export async function uninstallWait({ signal, logger }: ProgramContext): Promise<void> {
  const { POD_NAMESPACE: namespace, DAEMON_SET: name } = parseEnvironment(Configuration);
  const transport = createTransport({ credentials: await loadCredentials(), logger });
  try {
    await waitForDaemonSet(transport, { namespace, name }, logger, signal);
  } finally {
    transport.close();
  }
}

/** Returns when the DaemonSet is ready on every node that it is for, or when the signal is aborted. */
export async function waitForDaemonSet(
  transport: Transport,
  reference: { readonly namespace: string; readonly name: string },
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  let told = "";
  do {
    const { ready, nodes, isDone } = await daemonSetProgress(transport, reference, signal);
    const progress = `${ready} of ${nodes} nodes are clean`;
    if (progress !== told) logger.info({ daemonSet: reference.name, ready, nodes }, progress);
    told = progress;
    if (isDone) return;
  } while (await pause(POLL_MS, signal));
}
