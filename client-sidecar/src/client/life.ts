/** The life of a client: what may happen to it in each phase, and what is to be done then. Plain data. */

/**
 * adding: a pod waits for it. running: from then on until its pod ends. leaving: it is no client any more, and gateways
 * may still trust its addresses.
 */
export type Phase = "adding" | "running" | "leaving";

/**
 * established: its tunnels stand, and gateways know it. failed: it cannot be finished. deleted: the container runtime
 * detaches it. vanished: its network namespace is gone, without a word of the runtime.
 */
export type Happening = "established" | "failed" | "deleted" | "vanished";

/**
 * bury: its record goes; the files of its addresses are their tombstones. clean: all that is ours leaves its network namespace at
 * once, because nothing of the pod runs there yet. clean-later: the same when the interface of the pod is gone, because until then a
 * program that has not ended would have a way around the gateways. withdraw: gateways let go of its addresses.
 */
export type Task = "bury" | "clean" | "clean-later" | "withdraw";

export interface Step {
  readonly phase: Phase;
  /** In this order. */
  readonly tasks: readonly Task[];
}

const LIFE: Readonly<Record<Phase, Partial<Readonly<Record<Happening, Step>>>>> = {
  adding: {
    established: { phase: "running", tasks: [] },
    failed: { phase: "leaving", tasks: ["bury", "withdraw", "clean"] },
    deleted: { phase: "leaving", tasks: ["bury", "clean-later", "withdraw"] },
    vanished: { phase: "leaving", tasks: ["bury", "withdraw"] },
  },
  running: {
    deleted: { phase: "leaving", tasks: ["bury", "clean-later", "withdraw"] },
    vanished: { phase: "leaving", tasks: ["bury", "withdraw"] },
  },
  leaving: {
    // Deleted, and perhaps added again, while it was still being added.
    failed: { phase: "leaving", tasks: ["withdraw", "clean"] },
  },
};

/** @returns undefined where it means nothing in this phase */
export function next(phase: Phase, happening: Happening): Step | undefined {
  return LIFE[phase][happening];
}
