/** CNI ADD of a client or a gateway. */

import { isDeepStrictEqual } from "node:util";
import { CLIENT_ANNOTATION_PREFIX, GATEWAY_ANNOTATION, MAX_CLIENT_ADDRESSES } from "@egress-nat/crds";
import { type ClientConfig, FounatError } from "@egress-nat/founat";
import { KubeError } from "@egress-nat/kube";
import type { Logger } from "@egress-nat/program";
import { CniError, CniErrorCode } from "../cni/error.ts";
import type { PodReference } from "../cni/invocation.ts";
import type { AddRequest } from "../cni/protocol.ts";
import { type Acknowledgement, type Asker, awaitAcknowledgement } from "../gateways/acknowledgement.ts";
import { type EgressFacts, type EgressView, egressKey } from "../gateways/view.ts";
import type { AgentMetrics } from "../node-agent/metrics.ts";
import type { PodNetworks } from "../node-agent/netns.ts";
import type { LookUpPod, PodFacts } from "../node-agent/pod-lookup.ts";
import type { NodeState } from "../records/node-state.ts";
import type { ClientRecord, EgressReference } from "../records/record.ts";
import { recordId } from "../records/record-id.ts";
import type { SliceWriter } from "../slices/writer.ts";
import { assertUsable, clientConfig, parseClientAnnotations, recordEgress } from "./configuration.ts";
import { assertFree } from "./free-address.ts";
import { isLookalike } from "./lookalike.ts";
import { sayLookalikes } from "./lookalikes.ts";
import type { RecordPodEvent } from "./pod.ts";
import type { ClientRegistry } from "./registry.ts";
import { probeTunnels } from "./tunnel-probe.ts";
import type { Withdrawals } from "./withdrawals.ts";

/** Below what kubelet gives the container runtime (2 minutes), and what the plugin gives the agent. */
const ACKNOWLEDGE_DEADLINE_MS = 20_000;

export interface AdderOptions {
  readonly state: Pick<NodeState, "isTrusted" | "hasRecord">;
  readonly registry: ClientRegistry;
  readonly view: EgressView;
  readonly writer: Pick<SliceWriter, "write">;
  readonly withdrawals: Pick<Withdrawals, "scan">;
  readonly networks: PodNetworks;
  readonly asker: Pick<Asker, "ask">;
  readonly lookUpPod: LookUpPod;
  /** Looks at a client again: something has changed while it was being added. */
  readonly reapply: (record: string) => void;
  readonly recordEvent: RecordPodEvent;
  readonly metrics: Pick<AgentMetrics, "acknowledgeSeconds" | "tunnelProbes">;
  readonly logger: Logger;
  readonly acknowledgeDeadlineMs?: number;
}

/** Makes pods clients. Whatever it has begun and cannot finish, it takes back. */
export class Adder {
  readonly #options: AdderOptions;

  constructor(options: AdderOptions) {
    this.#options = options;
  }

  /**
   * @throws CniError that says what is missing, and what to do
   */
  async add(request: AddRequest, signal: AbortSignal): Promise<void> {
    try {
      await this.#add(request, signal);
    } catch (error) {
      throw explain(error, request.pod);
    }
  }

  async #add(request: AddRequest, signal: AbortSignal): Promise<void> {
    const { registry, networks, recordEvent, logger } = this.#options;
    const facts = await this.#facts(request, signal);
    if (request.annotations === undefined) {
      sayLookalikes(
        recordEvent,
        { ...request.pod, uid: facts.uid },
        Object.keys(facts.annotations).filter(isLookalike),
      );
    }
    const references = parseClientAnnotations(facts.annotations);
    const isGateway = facts.annotations[GATEWAY_ANNOTATION] === "true";
    const podAddresses = this.#podAddresses(request);
    assertMayBeClient(request.pod, podAddresses, references, isGateway);
    if (isGateway) {
      this.#assertGateway(request.pod);
      await networks.prepareGateway(request.netns);
      logger.info({ pod: request.pod }, "prepared a gateway's network namespace");
    }
    // A further network without addresses adds nothing to the client.
    if (references.length === 0 || request.addresses.length === 0) return;
    assertRoom(request.pod, podAddresses);
    const egresses = references.map((reference) => this.#usable(request.pod, podAddresses, reference));
    const { network, containerId, netns, ifname, addresses } = request;
    const { namespace, name } = request.pod;
    const record: ClientRecord = {
      ...{ network, containerId, netns, ifname, addresses },
      pod: { namespace, name, uid: facts.uid },
      addedAt: new Date().toISOString(),
      egresses: egresses.map(recordEgress),
    };
    const owner = registry.owner(netns, record) ?? record;
    const config = await this.#establish(record, owner, egresses, signal);
    if (owner === record) await probeTunnels(this.#options, record, config, egresses);
    logger.info({ pod: record.pod, addresses, egresses: references.map(egressKey) }, "added a client");
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
    const { state, registry, networks, withdrawals, view, reapply, logger } = this.#options;
    const config = clientConfig(owner, view);
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    signal.throwIfAborted();
    assertFree(state, record, record.addresses);
    registry.add(record);
    // The pod's programs start after ADD: tunnel and gateways can be made ready at the same time.
    const steps = [
      networks.setUp(record.netns, config),
      ...egresses.map((egress) => this.#announce(record, egress, either)),
    ];
    for (const step of steps) step.catch(() => failed.abort());
    const results = await Promise.allSettled(steps);
    const failure = results.find(({ status }) => status === "rejected");
    // Deleted meanwhile: the runtime gave up, DEL has buried the record, and another ADD may have made a new one.
    const isDeleted = !registry.holds(record);
    if (failure === undefined && !isDeleted && !signal.aborted) {
      if (!isDeepStrictEqual(config, clientConfig(owner, view))) reapply(recordId(owner));
      return config;
    }
    if (!isDeleted) registry.bury(recordId(record));
    withdrawals.scan();
    await networks
      .remove(record.netns, () => registry.owner(record.netns) === undefined)
      .catch((err: unknown) => logger.warn({ err, pod: record.pod }, "cannot clean the network namespace"));
    signal.throwIfAborted();
    throw (
      firstCause(results) ??
      new CniError(CniErrorCode.tryAgainLater, "the pod was deleted while it was being added")
    );
  }

  /** Writes the client into the slice, and waits for the gateways where the Egress asks for it. */
  async #announce(record: ClientRecord, egress: EgressFacts, signal: AbortSignal): Promise<void> {
    const { writer, view, asker, metrics, acknowledgeDeadlineMs = ACKNOWLEDGE_DEADLINE_MS } = this.#options;
    const { namespace, name } = egress.metadata;
    const version = await writer.write({ namespace, name });
    if (version?.generation === undefined) {
      throw new CniError(CniErrorCode.tryAgainLater, `Egress ${namespace}/${name} was deleted meanwhile`);
    }
    if (egress.spec.clientStartup === "Immediate") return;
    const endTimer = metrics.acknowledgeSeconds.startTimer();
    const acknowledgement = await awaitAcknowledgement({
      gateways: () => view.gateways({ namespace, name }),
      ...{ asker, version, signal },
      deadlineMs: acknowledgeDeadlineMs,
    });
    endTimer();
    this.#judge(record, egress, acknowledgement);
  }

  #judge(
    record: ClientRecord,
    egress: EgressFacts,
    { complete, applied, behind, silent }: Acknowledgement,
  ): void {
    const { recordEvent, acknowledgeDeadlineMs = ACKNOWLEDGE_DEADLINE_MS } = this.#options;
    const { namespace, name } = egress.metadata;
    if (complete) {
      if (silent.length === 0) return;
      const message = `gateways of Egress ${namespace}/${name} do not answer the heartbeat and are left out: ${silent.join(", ")}`;
      recordEvent(record.pod, { type: "Warning", reason: "GatewayNotAnswering", message });
      return;
    }
    const waited = `within ${acknowledgeDeadlineMs / 1000} s`;
    if (behind.length > 0) {
      throw new CniError(
        CniErrorCode.tryAgainLater,
        `gateways of Egress ${namespace}/${name} did not acknowledge the pod ${waited}: ${behind.join(", ")}`,
        `their logs say why: kubectl logs -n ${namespace} ${behind[0]}`,
      );
    }
    throw new CniError(
      CniErrorCode.tryAgainLater,
      applied.length + silent.length === 0
        ? `Egress ${namespace}/${name} has no gateway that is ready`
        : `no gateway of Egress ${namespace}/${name} answered the heartbeat ${waited}: ${silent.join(", ")}`,
      `a NetworkPolicy in namespace ${namespace} may drop UDP 5556 from the nodes; kubectl get pods,networkpolicies -n ${namespace}`,
    );
  }

  /**
   * Any author of a pod can write the annotation, a label or an owner. But only some may make pods where an Egress is: that
   * namespace admits privileged ones, which may set these sysctls by themselves.
   */
  #assertGateway({ namespace, name }: PodReference): void {
    if (this.#options.view.hasEgressIn(namespace)) return;
    throw new CniError(
      CniErrorCode.tryAgainLater,
      `pod ${namespace}/${name} has the annotation ${GATEWAY_ANNOTATION}, but there is no Egress in its namespace`,
      `only the operator sets it, on the gateways of an Egress: remove it; kubectl get egress -n ${namespace}`,
    );
  }

  /** By all of its networks so far: what a further one lacks, the first has. */
  #podAddresses(request: AddRequest): readonly string[] {
    const others = this.#options.registry
      .ofContainer(request.containerId)
      .filter((client) => recordId(client) !== recordId(request));
    return [...new Set([...others.flatMap(({ addresses }) => addresses), ...request.addresses])];
  }

  #usable(pod: PodReference, addresses: readonly string[], reference: EgressReference): EgressFacts {
    const { view } = this.#options;
    const egress = view.egress(reference);
    assertUsable(reference, egress, view.gateways(reference), pod.namespace, addresses);
    return egress;
  }

  async #facts({ pod, annotations }: AddRequest, signal: AbortSignal): Promise<PodFacts> {
    if (annotations !== undefined && pod.uid !== undefined) return { uid: pod.uid, annotations };
    const facts = await this.#options.lookUpPod(pod, signal);
    return annotations === undefined ? facts : { ...facts, annotations };
  }
}

/** @throws CniError for a pod that has annotations of a client, and cannot be one */
function assertMayBeClient(
  pod: PodReference,
  addresses: readonly string[],
  references: readonly unknown[],
  isGateway: boolean,
): void {
  if (references.length === 0) return;
  const name = `${pod.namespace}/${pod.name}`;
  if (isGateway) {
    throw new CniError(
      CniErrorCode.invalidPod,
      `pod ${name} is a gateway of an Egress, and a gateway cannot be a client`,
      `remove the annotations ${CLIENT_ANNOTATION_PREFIX}* from spec.template of the Egress; kubectl get egress -n ${pod.namespace}`,
    );
  }
  if (addresses.length === 0) {
    throw new CniError(
      CniErrorCode.invalidPod,
      `pod ${name} cannot be a client: the plugins before this one gave it no address`,
      "a client needs an address of the pod network: look at the other plugins of the node's conflist, and their IPAM",
    );
  }
}

/** A slice with more of them is refused as a whole, with all other clients in it. */
function assertRoom({ namespace, name }: PodReference, addresses: readonly string[]): void {
  if (addresses.length <= MAX_CLIENT_ADDRESSES) return;
  throw new CniError(
    CniErrorCode.invalidPod,
    `pod ${namespace}/${name} cannot be a client: it has ${addresses.length} addresses, and a client can have ${MAX_CLIENT_ADDRESSES} at most`,
    "chain the plugin in the pod network only: look at the conflists of its other networks",
  );
}

/** The first step that failed by itself, not because another one had. */
function firstCause(results: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = results.flatMap((result) =>
    result.status === "rejected" ? [result.reason as unknown] : [],
  );
  return reasons.find((reason) => !(reason instanceof DOMException)) ?? reasons[0];
}

function explain(error: unknown, pod: PodReference): unknown {
  const name = `${pod.namespace}/${pod.name}`;
  if (error instanceof KubeError) {
    return new CniError(
      CniErrorCode.tryAgainLater,
      `cannot make pod ${name} a client: ${error.message}`,
      "the Kubernetes API must answer, and the node agent must have its ClusterRole",
      { cause: error },
    );
  }
  if (error instanceof FounatError) {
    return new CniError(
      error.retryable ? CniErrorCode.tryAgainLater : CniErrorCode.invalidPod,
      `cannot program the network namespace of pod ${name}: ${error.message}`,
      undefined,
      { cause: error },
    );
  }
  return error;
}
