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

/** Does what is to be done when something happens to a client. */
export class Lives {
  readonly #options: LivesOptions;

  constructor(options: LivesOptions) {
    this.#options = options;
  }

  /** The record is buried before this gives way to anybody else. */
  async happened(happening: Happening, record: ClientRecord): Promise<void> {
    const { registry } = this.#options;
    const step = next(registry.phase(record), happening);
    if (step === undefined) return;
    registry.enter(record, step.phase);
    for (const task of step.tasks) await this.#do(task, record);
  }

  #do(task: Task, record: ClientRecord): unknown {
    const { registry, networks, leftovers, withdrawals, logger } = this.#options;
    const { netns, pod } = record;
    switch (task) {
      case "bury":
        return registry.bury(recordId(record));
      case "withdraw":
        return withdrawals.scan();
      case "clean-later":
        return leftovers.add(record);
      case "clean":
        return networks
          .remove(netns, () => registry.owner(netns) === undefined)
          .catch((err: unknown) => logger.warn({ err, pod }, "cannot clean the network namespace"));
    }
  }
}
