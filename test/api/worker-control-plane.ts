import { inject } from "vitest";

/** How many files run at the same time, each against a control plane of its own: as many as the machine has processors. */
export const WORKERS = 2;

/** The control plane of the `*.api.test.ts` files that one worker runs, one after the other. */
export interface WorkerControlPlane {
  /** Path of an administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** URL of etcd, plain HTTP. */
  readonly etcdUrl: string;
  /** Where is heard what should happen to the apiserver and etcd. */
  readonly handleUrl: string;
}

declare module "vitest" {
  interface ProvidedContext {
    /** One for each worker. */
    controlPlanes: readonly WorkerControlPlane[];
  }
}

/** The control plane of the calling test file. */
export function controlPlane(): WorkerControlPlane {
  const worker = Number(process.env.VITEST_POOL_ID ?? 1);
  return inject("controlPlanes")[worker - 1] as WorkerControlPlane;
}

export type ControlPlaneAction =
  | `apiserver/${"kill" | "start" | "pause" | "resume"}`
  | `etcd/${"kill" | "start"}`;

/**
 * What a test may do to its apiserver, which later files of the same worker use as well. A test that uses it leaves the
 * apiserver running: put `start` or `resume` in a `finally` or an `afterEach`.
 */
export const apiserver = {
  /** Ends it at once, as a crash would. */
  kill: () => act("apiserver/kill"),
  /** Starts it after {@link kill} and waits until it is ready. */
  start: () => act("apiserver/start"),
  /** Stops it in its tracks: connections stay open, nothing answers. */
  pause: () => act("apiserver/pause"),
  resume: () => act("apiserver/resume"),
} as const;

/** What a test may do to the etcd behind it; what was written is there again after the start. */
export const etcd = {
  kill: () => act("etcd/kill"),
  start: () => act("etcd/start"),
} as const;

async function act(action: ControlPlaneAction): Promise<void> {
  const response = await fetch(`${controlPlane().handleUrl}/${action}`, { method: "POST" });
  if (!response.ok) throw new Error(`${action}: ${await response.text()}`);
}
