import type { Logger } from "@egress-nat/program";
import { recordId } from "../records/record-id.ts";
import type { ClientRecord } from "../records/schema.ts";
import type { Leftovers } from "./leftovers.ts";
import { type Happening, next, type Task } from "./life.ts";
import type { PodNetworks } from "./networks.ts";
import type { ClientRegistry } from "./registry.ts";
import type { Withdrawals } from "./withdrawals.ts";

export interface LivesOptions {
  readonly registry: Pick<ClientRegistry, "phase" | "enter" | "bury" | "owner">;
  readonly networks: Pick<PodNetworks, "remove">;
  readonly leftovers: Pick<Leftovers, "add">;
  readonly withdrawals: Pick<Withdrawals, "scan">;
  readonly logger: Logger;
}

export interface Lives {
  /** Does what is to be done then. The record is buried before this gives way to anybody else. */
  happened(happening: Happening, record: ClientRecord): Promise<void>;
}

export function livesOf({ registry, networks, leftovers, withdrawals, logger }: LivesOptions): Lives {
  const tasks: Readonly<Record<Task, (record: ClientRecord) => unknown>> = {
    bury: (record) => registry.bury(recordId(record)),
    withdraw: () => withdrawals.scan(),
    "clean-later": (record) => leftovers.add(record),
    clean: ({ netns, pod }) =>
      networks
        .remove(netns, () => registry.owner(netns) === undefined)
        .catch((err: unknown) => logger.warn({ err, pod }, "cannot clean the network namespace")),
  };
  return {
    async happened(happening, record) {
      const step = next(registry.phase(record), happening);
      if (step === undefined) return;
      registry.enter(record, step.phase);
      for (const task of step.tasks) await tasks[task](record);
    },
  };
}
