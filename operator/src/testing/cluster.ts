/** A real API server as the tests see it: plain objects, by path. */

import { EGRESS_RESOURCE, Egress, SLICE_RESOURCE } from "@egress-nat/crds";
import {
  createTransport,
  hasCode,
  loadCredentials,
  type Resource,
  ResourceClient,
  resourcePath,
  type Transport,
} from "@egress-nat/kube";
import { createNamespace } from "@egress-nat/kube/testing/namespace";
import { createLogger } from "@egress-nat/program";
import { CHILD_RESOURCES, type ChildKind } from "../egress/children/index.ts";

export const silentLogger = createLogger({ name: "test", level: "silent" });

// biome-ignore lint/suspicious/noExplicitAny: a test asserts on any field of any object.
export type Anything = any;

/** One namespace of its own, and what a test does in it. */
export class Playground implements Disposable {
  readonly transport: Transport;
  readonly namespace: string;

  private constructor(transport: Transport, namespace: string) {
    this.transport = transport;
    this.namespace = namespace;
  }

  static async create(kubeconfig: string): Promise<Playground> {
    const transport = createTransport({
      credentials: await loadCredentials({ kubeconfig }),
      logger: silentLogger,
    });
    return new Playground(transport, await createNamespace(transport, "operator"));
  }

  async createEgress(name: string, spec: object = {}): Promise<Egress> {
    const metadata = { name, namespace: this.namespace };
    return this.#egresses().create({ metadata, spec: { destinations: ["0.0.0.0/0"], ...spec } });
  }

  /** Makes the Egress, or gives it a spec in place of the one that it has. */
  async writeEgress(name: string, spec: object): Promise<void> {
    if ((await this.get(EGRESS_RESOURCE, name)) === undefined) {
      await this.createEgress(name, spec);
      return;
    }
    await this.transport.request({
      method: "PATCH",
      path: resourcePath(EGRESS_RESOURCE, { namespace: this.namespace, name }),
      contentType: "application/json-patch+json",
      body: [{ op: "replace", path: "/spec", value: spec }],
    });
  }

  patchEgress(name: string, spec: object): Promise<Egress> {
    return this.#egresses().patch({ name, namespace: this.namespace }, { spec });
  }

  deleteEgress(name: string): Promise<void> {
    return this.#egresses().delete({ name, namespace: this.namespace });
  }

  /** "Degraded: True NameConflict" and so on, by type. */
  async conditions(name: string): Promise<Readonly<Record<string, string>>> {
    const { status } = await this.#egresses().get({ name, namespace: this.namespace });
    return Object.fromEntries((status?.conditions ?? []).map((c) => [c.type, `${c.status} ${c.reason}`]));
  }

  async status(name: string): Promise<Egress["status"]> {
    return (await this.#egresses().get({ name, namespace: this.namespace })).status;
  }

  /** The child of an Egress, or undefined if there is none. */
  child(kind: ChildKind, name: string): Promise<Anything> {
    return this.get(CHILD_RESOURCES[kind], name);
  }

  /** Kinds of the children that an Egress has. */
  async kinds(name: string): Promise<string[]> {
    const kinds = Object.keys(CHILD_RESOURCES) as ChildKind[];
    const children = await Promise.all(kinds.map((kind) => this.child(kind, name)));
    return kinds.filter((_, index) => children[index] !== undefined);
  }

  async get(resource: Resource, name: string): Promise<Anything> {
    const path = resourcePath(resource, { namespace: this.namespace, name });
    return this.transport.request<Anything>({ method: "GET", path }).catch((error: unknown) => {
      if (hasCode(error, "NotFound")) return undefined;
      throw error;
    });
  }

  /** All objects of a kind that are here. */
  async list(resource: Resource): Promise<Anything[]> {
    const path = resourcePath(resource, { namespace: this.namespace });
    return (await this.transport.request<Anything>({ method: "GET", path })).items;
  }

  create(resource: Resource, body: object): Promise<Anything> {
    return this.transport.request({
      method: "POST",
      path: resourcePath(resource, { namespace: this.namespace }),
      body,
    });
  }

  /** As the agent of a node would. @param clients names of pods */
  createSlice(
    metadata: {
      readonly name: string;
      readonly labels?: object;
      readonly ownerReferences?: readonly object[];
    },
    nodeName: string,
    clients: readonly string[] = [],
  ): Promise<Anything> {
    return this.create(SLICE_RESOURCE, {
      apiVersion: "coil.cybozu.com/v2",
      kind: "EgressClientSlice",
      metadata,
      nodeName,
      clients: clients.map((name) => ({
        ...{ namespace: "apps", name, uid: name, addresses: ["10.244.1.8"] },
        addedAt: "2026-01-02T03:04:05.678901Z",
      })),
    });
  }

  /** As a person with `kubectl edit` would. */
  patch(resource: Resource, name: string, patch: object, subresource?: string): Promise<Anything> {
    return this.transport.request({
      method: "PATCH",
      path: resourcePath(resource, { namespace: this.namespace, name, subresource }),
      contentType: "application/merge-patch+json",
      body: patch,
    });
  }

  delete(resource: Resource, name: string): Promise<Anything> {
    return this.transport.request({
      method: "DELETE",
      path: resourcePath(resource, { namespace: this.namespace, name }),
    });
  }

  /** "Warning NameConflict" and so on, about one Egress. */
  async events(name: string): Promise<string[]> {
    const { items } = await this.transport.request<Anything>({
      method: "GET",
      path: `/apis/events.k8s.io/v1/namespaces/${this.namespace}/events`,
    });
    return items
      .filter(({ regarding }: Anything) => regarding.kind === EGRESS_RESOURCE.kind && regarding.name === name)
      .map((event: Anything) => `${event.type} ${event.reason}`)
      .toSorted();
  }

  [Symbol.dispose](): void {
    this.transport.close();
  }

  #egresses(): ResourceClient<Egress> {
    return new ResourceClient(this.transport, EGRESS_RESOURCE, (raw) => Egress.parse(raw));
  }
}
