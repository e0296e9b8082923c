import { Backoff, type Clock, type KubeObject, pause, type ResourceClient } from "@egress-nat/kube";
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
  readonly clock?: Clock;
}

/** Between two looks at whether the node is ready. */
const READY_LOOK_MS = 500;

/** Between two looks at the node, as a rule: each is a request of every node. */
const NODE_LOOK_MS = 300_000;

const BACKOFF = { baseMs: 500, maxMs: 30_000 };

/**
 * Takes a taint off this node once it is ready for clients. A node that joins the cluster with the taint gets no pods
 * before: none can start unguarded because the plugin was not there yet. It may come back: a Node that was deleted is
 * registered with it again, and some providers put the taints of a pool back.
 *
 * Runs until the signal is aborted; errors are logged, and it is tried again.
 */
export async function removeStartupTaint(options: StartupTaintOptions, signal: AbortSignal): Promise<void> {
  const { ready, clock } = options;
  const backoff = new Backoff(BACKOFF);
  let delayMs: number;
  do delayMs = ready().ok ? await look(options, backoff, signal) : READY_LOOK_MS;
  while (await pause(delayMs, signal, clock));
}

/** @returns how long to wait before the next look, in milliseconds */
async function look(options: StartupTaintOptions, backoff: Backoff, signal: AbortSignal): Promise<number> {
  const { nodeName, key, logger } = options;
  try {
    if (await remove(options, signal)) logger.info({ node: nodeName, taint: key }, "startup taint removed");
    backoff.reset();
    // Agents that were made ready by the same event must not ask together for ever.
    return NODE_LOOK_MS * (0.5 + Math.random());
  } catch (err) {
    if (!signal.aborted) {
      logger.warn({ node: nodeName, taint: key, err }, "cannot remove the startup taint, trying again");
    }
    return backoff.next();
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
