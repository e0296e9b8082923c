/** Making pods clients or gateways. */

import { isDeepStrictEqual } from "node:util";
import { GATEWAY_ANNOTATION } from "@egress-nat/crds";
import type { ClientConfig } from "@egress-nat/founat";
import type { Logger } from "@egress-nat/program";
import type { EgressFacts, EgressView } from "../gateways/view.ts";
import { egressKey } from "../records/egress-key.ts";
import type { NodeState } from "../records/node-state.ts";
import { recordId } from "../records/record-id.ts";
import type { Attachment, ClientRecord } from "../records/schema.ts";
import { admitted, assertMayBeClient, assertMayBeGateway } from "./admission.ts";
import { type AnnouncementEffects, announce } from "./announcement.ts";
import { clientConfig, recordEgress } from "./configuration.ts";
import { ClientError } from "./error.ts";
import { heldAddress } from "./held-address.ts";
import type { Lives } from "./lives.ts";
import { isLookalike, sayLookalikes } from "./lookalike.ts";
import type { ClientMetrics } from "./metrics.ts";
import type { PodNetworks } from "./networks.ts";
import { type Annotations, optIns } from "./opt-in.ts";
import type { PodReference, RecordPodEvent } from "./pod.ts";
import type { ClientRegistry } from "./registry.ts";
import { probeTunnels } from "./tunnel-probe.ts";

/** A pod that is being attached to a network. */
export interface Candidate extends Attachment {
  readonly network: string;
  readonly netns: string;
  readonly pod: PodReference;
  /** Canonical addresses of the pod. */
  readonly addresses: readonly string[];
  /** Those that concern this product; absent where nobody has told them, so that they are looked up. */
  readonly annotations?: Annotations;
}

export interface PodFacts {
  readonly uid: string;
  readonly annotations: Annotations;
}

/** What is known of a pod of which the container runtime says too little. */
export type LookUpPod = (pod: PodReference, signal: AbortSignal) => Promise<PodFacts>;

export interface AdderOptions extends AnnouncementEffects {
  readonly state: Pick<NodeState, "isTrusted" | "hasRecord">;
  readonly registry: ClientRegistry;
  readonly lives: Lives;
  readonly view: EgressView;
  readonly networks: Pick<PodNetworks, "setUp" | "probe" | "prepareGateway">;
  readonly lookUpPod: LookUpPod;
  /** Looks at clients again: something has changed while it was being added. */
  readonly reapply: (clients: readonly Attachment[]) => void;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Pick<ClientMetrics, "acknowledgeSeconds" | "tunnelProbes">;
  readonly logger: Logger;
}

/** Before an ADD has begun, so that it has its own time for the rest. */
const DOUBT_DEADLINE_MS = 10_000;

/** Whatever it has begun and cannot finish, it takes back. */
export class Adder {
  readonly #options: AdderOptions;
  /** Egresses whose last client was not written into a slice, or not acknowledged. */
  readonly #unacknowledged = new Set<string>();

  constructor(options: AdderOptions) {
    this.#options = options;
  }

  /** @throws ClientError that says what is missing, and what to do; FounatError of the network namespace; the signal's reason */
  async add(candidate: Candidate, signal: AbortSignal): Promise<void> {
    const { registry, networks, view, logger } = this.#options;
    const facts = await this.#facts(candidate, signal);
    const { pod, netns } = candidate;
    const references = optIns(facts.annotations);
    const isGateway = facts.annotations[GATEWAY_ANNOTATION] === "true";
    const addresses = this.#podAddresses(candidate);
    if (references.length > 0) assertMayBeClient({ pod, uid: facts.uid, addresses, isGateway });
    if (isGateway) {
      assertMayBeGateway(pod, view);
      await networks.prepareGateway(netns);
      logger.info({ pod }, "prepared a gateway's network namespace");
    }
    // A further network without addresses adds nothing to the client.
    if (references.length === 0 || candidate.addresses.length === 0) return;
    const admit = () => references.map((reference) => admitted({ pod, addresses }, reference, view));
    await this.#settleDoubts({ ...pod, uid: facts.uid }, admit(), signal);
    const egresses = admit();
    const record = recordOf(candidate, facts.uid, egresses);
    const owner = registry.owner(netns, record) ?? record;
    const config = await this.#establish(record, owner, egresses, signal);
    if (owner === record) await probeTunnels(this.#options, record, config, egresses);
    await this.#options.lives.happened("established", record);
    const names = references.map(egressKey);
    logger.info({ pod: record.pod, addresses: record.addresses, egresses: names }, "added a client");
  }

  /**
   * From here on a gateway may trust the pod's addresses: either all of it stands at the end, or all is withdrawn.
   *
   * @param owner of the network namespace: the client itself, or the same pod's by its first network
   * @returns what the pod's network namespace is now
   */
  async #establish(
    record: ClientRecord,
    owner: ClientRecord,
    egresses: readonly EgressFacts[],
    signal: AbortSignal,
  ): Promise<ClientConfig> {
    const { state, registry, lives, networks, view, reapply } = this.#options;
    const config = clientConfig(owner, view);
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    signal.throwIfAborted();
    const held = heldAddress(state, record, record.addresses);
    if (held !== undefined) throw new ClientError(held);
    registry.add(record);
    // The pod's programs start after ADD: tunnel and gateways can be made ready at the same time.
    const steps = [
      networks.setUp(record.netns, config),
      ...egresses.map((egress) => this.#announce(record.pod, egress, either)),
    ];
    for (const step of steps) step.catch(() => failed.abort());
    const results = await Promise.allSettled(steps);
    const isWhole = results.every(({ status }) => status === "fulfilled");
    // Deleted meanwhile: the runtime gave up, and another ADD may have made a new one.
    if (isWhole && registry.holds(record) && !signal.aborted) {
      if (!isDeepStrictEqual(config, clientConfig(owner, view))) reapply([owner]);
      return config;
    }
    await lives.happened("failed", record);
    signal.throwIfAborted();
    const message = "the pod was deleted while it was being added";
    throw firstCause(results) ?? new ClientError({ reason: "deleted-meanwhile", message });
  }

  /**
   * Whoever cannot be made a client keeps an address from others until gateways have let go of it, and is tried again with the
   * next one. So after one of them the others are not begun before its slices are written and acknowledged again.
   */
  async #settleDoubts(
    pod: PodReference,
    egresses: readonly EgressFacts[],
    signal: AbortSignal,
  ): Promise<void> {
    const { acknowledgeDeadlineMs = DOUBT_DEADLINE_MS } = this.#options;
    const effects = {
      ...this.#options,
      acknowledgeDeadlineMs: Math.min(acknowledgeDeadlineMs, DOUBT_DEADLINE_MS),
    };
    const doubtful = egresses.filter(({ metadata }) => this.#unacknowledged.has(egressKey(metadata)));
    await Promise.all(doubtful.map((egress) => this.#announce(pod, egress, signal, effects)));
  }

  async #announce(
    pod: PodReference,
    egress: EgressFacts,
    signal: AbortSignal,
    effects: AnnouncementEffects = this.#options,
  ): Promise<void> {
    const key = egressKey(egress.metadata);
    const leftOut = await announce(effects, egress, signal).catch((err: unknown) => {
      const isOtherwise = err instanceof ClientError && err.code !== "not-acknowledged";
      if (!signal.aborted && !isOtherwise) this.#unacknowledged.add(key);
      throw err;
    });
    this.#unacknowledged.delete(key);
    if (leftOut.length === 0) return;
    const message = `the pod starts without gateways of Egress ${key} that do not answer the heartbeat: ${leftOut.join(", ")}`;
    this.#options.recordEvent(pod, { type: "Warning", reason: "GatewayNotAnswering", message });
  }

  /** By all of its networks so far: what a further one lacks, the first has. */
  #podAddresses(candidate: Candidate): readonly string[] {
    const { containerId } = candidate;
    const others = this.#options.registry
      .values()
      .filter((client) => client.containerId === containerId && recordId(client) !== recordId(candidate));
    return [...new Set([...others.flatMap(({ addresses }) => addresses), ...candidate.addresses])];
  }

  async #facts({ pod, annotations }: Candidate, signal: AbortSignal): Promise<PodFacts> {
    const { lookUpPod, recordEvent } = this.#options;
    if (annotations !== undefined && pod.uid !== undefined) return { uid: pod.uid, annotations };
    const facts = await lookUpPod(pod, signal);
    if (annotations !== undefined) return { ...facts, annotations };
    const lookalikes = Object.keys(facts.annotations).filter(isLookalike);
    sayLookalikes(recordEvent, { ...pod, uid: facts.uid }, lookalikes);
    return facts;
  }
}

function recordOf(
  { network, containerId, netns, ifname, addresses, pod: { namespace, name } }: Candidate,
  uid: string,
  egresses: readonly EgressFacts[],
): ClientRecord {
  return {
    ...{ network, containerId, netns, ifname, addresses },
    pod: { namespace, name, uid },
    addedAt: new Date().toISOString(),
    egresses: egresses.map(recordEgress),
  };
}

/** The first step that failed by itself, not because another one had. */
function firstCause(results: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = results.flatMap((result) =>
    result.status === "rejected" ? [result.reason as unknown] : [],
  );
  return reasons.find((reason) => !(reason instanceof DOMException)) ?? reasons[0];
}
