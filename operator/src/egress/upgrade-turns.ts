/** Whose gateways are replaced next when all should be: so many Egresses at a time. */

import type { KubeError } from "@egress-nat/kube";
import type { ObservedDeployment } from "./observed.ts";
import { isUpgrading, templateOf } from "./rollout.ts";

export interface UpgradeTurnsOptions {
  /** How many Egresses at a time. */
  readonly limit: number;
  /** The Deployment of an Egress, as last seen. */
  readonly deployment: (key: string) => ObservedDeployment | undefined;
  /** All that count, by the Egress's key. */
  readonly deployments: () => Iterable<readonly [key: string, deployment: ObservedDeployment]>;
  /** Has an Egress looked at again: its turn may have come. */
  readonly wake: (key: string) => void;
}

/**
 * Who is under way stands in the Deployments, so that another operator goes on from there; an upgrade that does not get
 * ready keeps its place, and what is broken is not spread. What is kept here only makes it quicker: the places that were
 * given and are not seen yet, and who waits.
 */
export class UpgradeTurns {
  readonly #options: UpgradeTurnsOptions;
  /**
   * The template that each is to replace: another is in the store after a moment. Which one is not known, because a watch
   * that was away skips the upgrade's own where the author of the Egress has changed it since.
   */
  readonly #given = new Map<string, string>();
  readonly #waiting = new Set<string>();
  readonly #failures = new Map<string, KubeError>();
  /** Egresses that nobody is served by: nothing is gained by them, and they show nothing of a new image. */
  readonly #last = new Set<string>();

  constructor(options: UpgradeTurnsOptions) {
    this.#options = options;
  }

  /**
   * Gives a place, or lets an Egress wait for one: it is woken then.
   *
   * @param key of the Egress
   * @param isAvailable whether one of its gateways serves
   * @param template that its Deployment was seen with, and that the upgrade replaces
   */
  take(key: string, isAvailable: boolean, template: string): boolean {
    const underWay = this.#underWay();
    const isFree = isAvailable
      ? underWay.size < this.#options.limit
      : this.#last.has(key) && underWay.size + this.#waiting.size === 0;
    this.#waiting.delete(key);
    this.#last.delete(key);
    if (isFree || underWay.has(key)) {
      // One that nobody is served by keeps nobody waiting.
      if (isAvailable) this.#given.set(key, template);
      this.#failures.delete(key);
      return true;
    }
    (isAvailable ? this.#waiting : this.#last).add(key);
    return false;
  }

  /** What the API server has said against an upgrade: that holds until it is tried again. */
  failed(key: string, error: KubeError): void {
    this.#failures.set(key, error);
  }

  /** What the last try has met, of an Egress that waits for its next one. */
  failure(key: string): KubeError | undefined {
    return this.#failures.get(key);
  }

  /** A place that was given is not used: the upgrade was refused. */
  giveBack(key: string): void {
    this.#given.delete(key);
    this.#wakeNext();
  }

  /** A Deployment has changed, and perhaps a place is free. */
  seen(key: string): void {
    const deployment = this.#options.deployment(key);
    if (deployment === undefined || templateOf(deployment) !== this.#given.get(key)) this.#given.delete(key);
    if (deployment === undefined)
      for (const kept of [this.#waiting, this.#last, this.#failures]) kept.delete(key);
    this.#wakeNext();
  }

  #wakeNext(): void {
    if (this.#waiting.size + this.#last.size === 0) return;
    const underWay = this.#underWay().size;
    const free = Math.max(this.#options.limit - underWay, 0);
    const next = [...this.#waiting].slice(0, free);
    for (const key of next) {
      // It waits again by itself, if it still wants to.
      this.#waiting.delete(key);
      this.#options.wake(key);
    }
    if (next.length + this.#waiting.size + underWay === 0)
      for (const key of this.#last) this.#options.wake(key);
  }

  #underWay(): ReadonlySet<string> {
    const underWay = [...this.#options.deployments()].filter(
      ([key, deployment]) => this.#given.has(key) || isUpgrading(deployment),
    );
    return new Set(underWay.map(([key]) => key));
  }
}
