import { Backoff, type KubeObject, pause, type ResourceClient } from "@egress-nat/kube";
import type { Check, Logger } from "@egress-nat/program";
import { z } from "zod";

/** Taints as far as they are compared; the rest of them is kept. */
const Taint = z.looseObject({ key: z.string() });

export const TaintedNode = z.object({
  metadata: z.object({ name: z.string(), resourceVersion: z.string() }),
  spec: z.object({ taints: z.array(Taint).default([]) }),
});
export type TaintedNode = z.infer<typeof TaintedNode> & KubeObject;

export interface StartupTaintOptions {
  readonly nodes: Pick<ResourceClient<TaintedNode>, "get" | "patch">;
  readonly nodeName: string;
  readonly key: string;
  /** Whether clients may come to this node. */
  readonly ready: () => Check;
  readonly logger: Logger;
}

const LOOK_MS = 500;
const BACKOFF = { baseMs: 500, maxMs: 30_000 };

/**
 * Takes a taint off this node once it is ready for clients. A node that joins the cluster with the taint gets no pods
 * before: none can start unguarded because the plugin was not there yet.
 *
 * Returns when that is done or the signal is aborted; errors are logged, and it is tried again.
 */
export async function removeStartupTaint(options: StartupTaintOptions, signal: AbortSignal): Promise<void> {
  const { ready, nodeName, key, logger } = options;
  while (!ready().ok) if (!(await pause(LOOK_MS, signal))) return;
  const backoff = new Backoff(BACKOFF);
  while (!signal.aborted) {
    try {
      if (await remove(options, signal)) logger.info({ node: nodeName, taint: key }, "startup taint removed");
      return;
    } catch (error) {
      if (signal.aborted) return;
      logger.warn(
        { node: nodeName, taint: key, err: error },
        "cannot remove the startup taint, trying again",
      );
      await pause(backoff.next(), signal);
    }
  }
}

/** @returns whether there was such a taint */
async function remove({ nodes, nodeName, key }: StartupTaintOptions, signal: AbortSignal): Promise<boolean> {
  const { metadata, spec } = await nodes.get({ name: nodeName }, { signal });
  const taints = spec.taints.filter((taint) => taint.key !== key);
  if (taints.length === spec.taints.length) return false;
  // Only this version of the node: the list is written as a whole, and another's new taint must not be lost.
  const { resourceVersion } = metadata;
  await nodes.patch({ name: nodeName }, { metadata: { resourceVersion }, spec: { taints } }, { signal });
  return true;
}
