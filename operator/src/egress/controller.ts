/** Egresses under one lead. */

import { type Controller, type EventRecorder, objectKey, type Transport, time } from "@egress-nat/kube";
import type { PublishedRanges } from "../cluster-ranges/published.ts";
import { ChildClient } from "./child-client.ts";
import type { GatewaySettings } from "./children/index.ts";
import { egressClient } from "./egress-client.ts";
import { GatewayReasons } from "./gateway-reasons.ts";
import { LastingFailures } from "./lasting-failures.ts";
import { askWhyNotReady } from "./readiness-question.ts";
import { reconcileEgress } from "./reconcile.ts";
import { type EgressCaches, EgressView } from "./snapshot.ts";
import { UpgradeTurns } from "./upgrade-turns.ts";
import type { EgressWorld } from "./world.ts";

export interface EgressLeadOptions {
  readonly controller: Controller;
  readonly caches: EgressCaches;
  readonly ranges: PublishedRanges;
  /** On which nothing is sent once the lead has ended. */
  readonly transport: Transport;
  readonly events: EventRecorder;
  readonly settings: GatewaySettings;
  /** Of how many Egresses gateways are replaced at a time where the operator itself is the reason. */
  readonly maxConcurrentRollouts: number;
  /** TCP port at which gateways say why they are not ready, where it is not the usual one. */
  readonly gatewayHealthPort?: number;
}

/** Reconciles until the signal is aborted. What is kept beside the caches is of this lead: the next one finds out by itself. */
export async function reconcileEgresses(options: EgressLeadOptions, signal: AbortSignal): Promise<void> {
  const { controller, caches, ranges, transport, events, settings } = options;
  const { deployment } = caches.children;
  const view = new EgressView(caches, ranges);
  const wake = (key: string) => controller.add(key);
  const upgradeTurns = new UpgradeTurns({
    limit: options.maxConcurrentRollouts,
    deployment: (key) => deployment.store.get(key),
    deployments: () => view.deploymentsToUpgrade(),
    wake,
  });
  const unfollow = deployment.onChange(({ key }) => upgradeTurns.seen(key));
  signal.addEventListener("abort", unfollow, { once: true });
  const gatewayReasons = new GatewayReasons({
    gateways: (key) => view.gateways(key),
    isInside: (address) => ranges.isInside(address),
    ask: (address, stop) => askWhyNotReady(address, stop, options.gatewayHealthPort),
    onChange: wake,
  });
  const world: EgressWorld = {
    ...{ settings, upgradeTurns, lastingFailures: new LastingFailures() },
    children: new ChildClient(transport),
    surroundings: (egress) => view.surroundings(egress, gatewayReasons.of(objectKey(egress))),
    ...egressClient(transport, caches.egresses, events),
    now: time,
  };
  await Promise.all([
    gatewayReasons.run(signal),
    controller.run(
      {
        gather: (key) => view.snapshot(key),
        reconcile: (snapshot, context) => reconcileEgress(snapshot, world, context),
      },
      signal,
    ),
  ]);
}
