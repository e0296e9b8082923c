/** Writes this node's EgressClientSlices. */

import { isDeepStrictEqual } from "node:util";
import {
  type EgressClientSlice,
  type GatewayReport,
  NODE_AGENT,
  type SliceClient,
  sliceName,
} from "@egress-nat/crds";
import { ifFound, KubeError, type ResourceClient } from "@egress-nat/kube";
import type { ClientRegistry } from "../client/registry.ts";
import type { SliceVersion } from "../gateways/health.ts";
import type { EgressView, StoredEgress } from "../gateways/view.ts";
import { egressKey, egressOfKey } from "../records/egress-key.ts";
import type { EgressReference } from "../records/schema.ts";
import { desiredSlice, sliceClients } from "./desired.ts";

export interface SliceWriterOptions {
  readonly client: Pick<ResourceClient<EgressClientSlice>, "apply" | "delete">;
  readonly nodeName: string;
  readonly registry: Pick<ClientRegistry, "ofEgress">;
  readonly view: Pick<EgressView, "egress" | "gateways">;
  /** What this node reports of the gateways of an Egress. */
  readonly reports: (reference: EgressReference) => readonly GatewayReport[];
  /** The slice as last seen through a watch, perhaps late. */
  readonly seen: (reference: EgressReference) => EgressClientSlice | undefined;
}

interface Content {
  readonly clients: SliceClient[];
  readonly suspects: readonly GatewayReport[];
}

/** What this process has written last; of a slice that it has deleted nothing but the UID. */
interface Written extends SliceVersion {
  readonly resourceVersion?: string;
}

/** HTTP. */
const REQUEST_TIMEOUT = 408;

/** Of a slice whose UID nobody told: no gateway can say that it has let go of it, but all go with their Egress. */
const UNKNOWN: SliceVersion = { uid: "", generation: Number.POSITIVE_INFINITY };

/**
 * Brings slices to what the records say. One write per slice is under way at a time, and whoever asks meanwhile shares
 * the next one: a hundred pods that start together take a handful of writes.
 */
export class SliceWriter {
  readonly #options: SliceWriterOptions;
  readonly #running = new Map<string, Promise<SliceVersion | undefined>>();
  readonly #queued = new Map<string, Promise<SliceVersion | undefined>>();
  readonly #written = new Map<string, Written>();
  /** Slices that a write may have made although its answer was lost. */
  readonly #attempted = new Set<string>();
  /** Those whose last write was not answered: there may be another one than what is seen. */
  readonly #unanswered = new Set<string>();

  constructor(options: SliceWriterOptions) {
    this.#options = options;
  }

  /**
   * @returns the version that holds all records of the moment of this call; undefined where there is no Egress, and no slice
   * @throws KubeError
   */
  write(reference: EgressReference): Promise<SliceVersion | undefined> {
    const key = egressKey(reference);
    const queued = this.#queued.get(key);
    if (queued !== undefined) return queued;
    const running = this.#running.get(key);
    if (running === undefined) return this.#start(key, reference);
    const next = running.then(ignore, ignore).then(() => {
      this.#queued.delete(key);
      return this.#start(key, reference);
    });
    this.#queued.set(key, next);
    return next;
  }

  /** Whether a slice as seen is what it should be, or a write will make it so. */
  isInOrder(reference: EgressReference): boolean {
    const key = egressKey(reference);
    if (this.#running.has(key) || this.#queued.has(key)) return true;
    if (this.#unanswered.has(key)) return false;
    const { owner, current, content } = this.#facts(reference);
    if (current === undefined) return content.clients.length === 0 || owner === undefined;
    return this.#isOutdated(key, current) || holds(current, content);
  }

  /** Takes whatever is seen from now on for what is there: after a restore of etcd it may be older than what was written. */
  forget(): void {
    this.#written.clear();
  }

  /** Forgets the Egresses that are gone with their slices and their gateways: nobody is left who may have applied a slice. */
  sweep(): void {
    for (const kept of [this.#written, this.#attempted, this.#unanswered])
      for (const key of kept.keys()) if (this.#isGone(key)) kept.delete(key);
  }

  #isGone(key: string): boolean {
    const { view, seen } = this.#options;
    const reference = egressOfKey(key);
    return (
      !this.#running.has(key) &&
      view.egress(reference) === undefined &&
      seen(reference) === undefined &&
      view.gateways(reference).length === 0
    );
  }

  #facts(reference: EgressReference) {
    const { registry, view, reports, seen } = this.#options;
    return {
      owner: view.egress(reference),
      current: seen(reference),
      content: { clients: sliceClients(registry.ofEgress(reference)), suspects: reports(reference) },
    };
  }

  #start(key: string, reference: EgressReference): Promise<SliceVersion | undefined> {
    const running = this.#perform(key, reference).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }

  async #perform(key: string, reference: EgressReference): Promise<SliceVersion | undefined> {
    const { owner, current, content } = this.#facts(reference);
    if (owner === undefined) return this.#delete(key, reference, current);
    const isCurrent = current !== undefined && !this.#unanswered.has(key) && !this.#isOutdated(key, current);
    if (isCurrent && isSame(current, owner, content)) {
      return versionOf(current);
    }
    // One without clients as well: gateways answer with its generation, and "applied" is a surer sign than "unknown" that
    // they have let go of the last one. Who is cut off from the API still knows a slice that was deleted.
    return this.#apply(key, owner, content);
  }

  async #apply(key: string, owner: StoredEgress, { clients, suspects }: Content): Promise<SliceVersion> {
    const { client, nodeName } = this.#options;
    const slice = desiredSlice(owner, nodeName, clients, suspects);
    const wasUnanswered = this.#unanswered.has(key);
    this.#attempted.add(key);
    this.#unanswered.add(key);
    // Nobody else has a say in this object: what another manager wrote into it goes.
    const written = await client
      .apply(slice, { fieldManager: NODE_AGENT, force: true })
      .catch((err: unknown) => {
        if (!wasUnanswered && isRefusal(err)) this.#unanswered.delete(key);
        throw err;
      });
    this.#unanswered.delete(key);
    this.#written.set(key, written.metadata);
    return versionOf(written);
  }

  async #delete(
    key: string,
    { namespace, name }: EgressReference,
    current: EgressClientSlice | undefined,
  ): Promise<SliceVersion | undefined> {
    const { client, nodeName } = this.#options;
    const isKnown = current !== undefined && !this.#isOutdated(key, current);
    const last = isKnown ? versionOf(current) : this.#written.get(key);
    if (last === undefined && !this.#attempted.has(key)) return undefined;
    await ifFound(client.delete({ namespace, name: sliceName(name, nodeName) }));
    this.#unanswered.delete(key);
    if (last === undefined) return UNKNOWN;
    const version = { uid: last.uid, generation: undefined };
    this.#written.set(key, version);
    return version;
  }

  /**
   * A watch is late: what it showed last may be older than what this process has written since. A slice of the same name may
   * have been made anew, by this process or by another, so generations do not tell.
   *
   * @see https://kep.k8s.io/5504 resourceVersions are decimal numbers that can be compared
   */
  #isOutdated(key: string, { metadata }: EgressClientSlice): boolean {
    const written = this.#written.get(key);
    if (written === undefined) return false;
    if (written.generation === undefined) return written.uid === metadata.uid;
    return Number(metadata.resourceVersion) < Number(written.resourceVersion);
  }
}

/** An answer by which nothing was written. */
function isRefusal(error: unknown): boolean {
  const { status = 0 } = error instanceof KubeError ? error : {};
  return status >= 400 && status < 500 && status !== REQUEST_TIMEOUT;
}

function isSame(slice: EgressClientSlice, owner: StoredEgress, content: Content): boolean {
  const isOwned = slice.metadata.ownerReferences?.some(({ uid }) => uid === owner.metadata.uid) ?? false;
  return isOwned && holds(slice, content);
}

/** Earlier releases did not write how many clients there are. */
function holds(slice: EgressClientSlice, { clients, suspects }: Content): boolean {
  return (
    slice.clientCount === clients.length &&
    isDeepStrictEqual(slice.clients, clients) &&
    isDeepStrictEqual(slice.suspects ?? [], suspects)
  );
}

function versionOf({ metadata }: EgressClientSlice): SliceVersion {
  return { uid: metadata.uid, generation: metadata.generation };
}

function ignore(): void {}
