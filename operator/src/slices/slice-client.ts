/** What the operator asks the API server before it deletes a slice: a slice may arrive before its node and its Egress do. */

import { EGRESS_RESOURCE, ObjectHead, SLICE_RESOURCE } from "@egress-nat/crds";
import { NODE_RESOURCE, type ObjectReference, ResourceClient, type Transport } from "@egress-nat/kube";
import { z } from "zod";
import { NodeHead } from "../cluster-ranges/sources.ts";
import type { SliceApi } from "./orphans.ts";
import { SliceHead } from "./slice-head.ts";

const EgressHead = z.object({ metadata: ObjectHead });

export class SliceClient implements SliceApi {
  readonly #slices: ResourceClient<SliceHead>;
  readonly #nodes: ResourceClient<NodeHead>;
  readonly #egresses: ResourceClient<z.infer<typeof EgressHead>>;

  constructor(transport: Transport) {
    this.#slices = new ResourceClient(transport, SLICE_RESOURCE, (raw) => SliceHead.parse(raw));
    this.#nodes = new ResourceClient(transport, NODE_RESOURCE, (raw) => NodeHead.parse(raw));
    this.#egresses = new ResourceClient(transport, EGRESS_RESOURCE, (raw) => EgressHead.parse(raw));
  }

  async hasNode(name: string, signal: AbortSignal): Promise<boolean> {
    return (await this.#nodes.find({ name }, { signal })) !== undefined;
  }

  async egressUid({ namespace, name }: ObjectReference, signal: AbortSignal): Promise<string | undefined> {
    // By a list of one: the operator has no right to get Egresses, because it lists and watches them all.
    const selection = { namespace, fieldSelector: `metadata.name=${name}` };
    const { items } = await this.#egresses.list({ ...selection, signal });
    return items[0]?.metadata.uid;
  }

  delete({ metadata }: SliceHead, signal: AbortSignal): Promise<void> {
    const { uid, resourceVersion } = metadata;
    return this.#slices.remove(metadata, { preconditions: { uid, resourceVersion }, signal });
  }
}
