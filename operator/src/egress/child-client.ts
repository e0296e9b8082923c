/** The children of Egresses in the API. */

import { OPERATOR } from "@egress-nat/crds";
import { hasCode, ifFound, type ObjectReference, ResourceClient, type Transport } from "@egress-nat/kube";
import { CHILD_RESOURCES, type ChildKind, type Manifest } from "./children/index.ts";
import {
  childParser,
  forEachChild,
  type ObservedChild,
  type ObservedChildren,
  type ObservedDeployment,
  type ObservedOf,
} from "./observed.ts";
import type { Adjustment } from "./rollout.ts";

/** Each call throws KubeError. */
export class ChildClient {
  readonly #clients: { readonly [K in ChildKind]: ResourceClient<ObservedOf<K>> };

  constructor(transport: Transport) {
    this.#clients = forEachChild(
      (child) => new ResourceClient(transport, CHILD_RESOURCES[child], childParser(child)),
    );
  }

  /** @returns the object of that name, whoever it belongs to; undefined if there is none */
  read<K extends ChildKind>(
    child: K,
    egress: ObjectReference,
    signal: AbortSignal,
  ): Promise<ObservedChildren[K]> {
    return ifFound(this.#clients[child].get(egress, { signal }));
  }

  /** Server-side apply of what is not there. @throws KubeError Conflict where something of that name is */
  create<K extends ChildKind>(child: K, manifest: Manifest, signal: AbortSignal): Promise<ObservedOf<K>> {
    return this.#clients[child].createByApply(manifest, { fieldManager: OPERATOR, signal });
  }

  /**
   * Server-side apply.
   *
   * @param seen what was looked at, whose fields are taken from other managers; undefined: nothing of that name
   * @throws KubeError Conflict where it is not what was looked at any more
   */
  async apply<K extends ChildKind>(
    child: K,
    manifest: Manifest,
    seen: ObservedChildren[K],
    signal: AbortSignal,
  ): Promise<ObservedOf<K>> {
    const client = this.#clients[child];
    const options = { fieldManager: OPERATOR, force: seen !== undefined, signal };
    const applyTo = (version: ObservedChild | undefined) => {
      const { resourceVersion } = version?.metadata ?? {};
      return client.apply({ ...manifest, metadata: { ...manifest.metadata, resourceVersion } }, options);
    };
    try {
      return await applyTo(seen);
    } catch (error) {
      if (seen === undefined || !hasCode(error, "Invalid")) throw error;
      // The Egress may be at fault, or what somebody has added to the child by hand: that is taken away for no other reason.
      if (!(await client.isAcceptable(manifest, { signal }))) throw error;
      const takenOver = await client.takeOver(seen.metadata, options);
      if (takenOver === undefined) throw error;
      return applyTo(takenOver);
    }
  }

  /** Sets this, and nothing else. @throws KubeError Conflict as {@link apply} */
  adjust(
    { metadata }: ObservedDeployment,
    { replicas, strategy }: Adjustment,
    signal: AbortSignal,
  ): Promise<ObservedDeployment> {
    const { resourceVersion } = metadata;
    // What another strategy has left is invalid beside some.
    const spec = { replicas, strategy: { rollingUpdate: null, ...strategy } };
    return this.#clients.deployment.patch(metadata, { metadata: { resourceVersion }, spec }, { signal });
  }

  /** @throws KubeError Conflict as {@link apply} */
  async delete(child: ChildKind, { metadata }: ObservedChild, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = metadata;
    await ifFound(this.#clients[child].delete(metadata, { preconditions: { uid, resourceVersion }, signal }));
  }
}
