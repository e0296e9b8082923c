import { EGRESS_RESOURCE, Egress } from "@egress-nat/crds";
import {
  Cache,
  type KubeObject,
  NAMESPACE_RESOURCE,
  type Resource,
  ResourceClient,
  resourcePath,
  type Transport,
} from "@egress-nat/kube";
import { CHILD_RESOURCES } from "@egress-nat/operator";
import { createLogger } from "@egress-nat/program";
import { z } from "zod";
import { inParallel } from "../in-parallel.ts";

export const EGRESSES = 1000;

/** What an Egress without a PodDisruptionBudget is made of. */
export const CHILDREN = ["serviceAccount", "role", "roleBinding", "service", "deployment"] as const;

/** Of the Egresses, and of what the operator makes for them. */
export const NAMESPACE = "bench";

/** Of what a plain loop makes. */
export const BY_HAND = "by-hand";

export const CONCURRENCY = 10;

/** All of 1,000 objects at once. */
const COLLECTION_TIMEOUT_MS = 300_000;

/** What a watch needs of any object. */
export const Metadata = z.object({
  name: z.string(),
  namespace: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
});

/** As much of an Egress as says whether the operator is done with it. */
const Head = z.object({
  metadata: Metadata.extend({ generation: z.int() }),
  status: z
    .object({
      observedGeneration: z.int(),
      conditions: z.array(z.object({ type: z.string(), status: z.string() })),
    })
    .optional(),
});
type Head = z.infer<typeof Head> & KubeObject;

export const logger = createLogger({ name: "bench", level: "warn" });

/** 1,000 Egresses and their children, and an eye on what the operator says of them. */
export class Population implements Disposable {
  readonly transport: Transport;
  readonly egresses: ResourceClient<Egress>;
  readonly #stop = new AbortController();
  readonly #settled = new Set<string>();

  private constructor(transport: Transport) {
    this.transport = transport;
    this.egresses = new ResourceClient(transport, EGRESS_RESOURCE, (raw) => Egress.parse(raw));
  }

  static async of(transport: Transport): Promise<Population> {
    for (const name of [NAMESPACE, BY_HAND]) {
      const path = resourcePath(NAMESPACE_RESOURCE);
      await transport.request({ method: "POST", path, body: { metadata: { name } } });
    }
    const population = new Population(transport);
    await population.#watch();
    return population;
  }

  async create(): Promise<void> {
    const names = Array.from({ length: EGRESSES }, (_, index) => egressName(index));
    await inParallel(CONCURRENCY, names, (name) =>
      this.egresses.create({
        metadata: { namespace: NAMESPACE, name },
        spec: { destinations: ["0.0.0.0/0", "::/0"] },
      }),
    );
  }

  /** Whether the operator has applied all children of all Egresses as they are now, and has said so in their statuses. */
  get isSettled(): boolean {
    return this.#settled.size === EGRESSES;
  }

  /** The same for one Egress. */
  hasSettled(name: string): boolean {
    return this.#settled.has(name);
  }

  /** @returns how many children there are */
  async children(namespace: string): Promise<number> {
    const lists = CHILDREN.map((child) =>
      new ResourceClient(this.transport, CHILD_RESOURCES[child], (raw) => raw as KubeObject).list({
        namespace,
      }),
    );
    return (await Promise.all(lists)).reduce((sum, { items }) => sum + items.length, 0);
  }

  async removeEgresses(): Promise<void> {
    await this.#removeAll(EGRESS_RESOURCE, NAMESPACE);
    await this.removeChildren(NAMESPACE);
  }

  /** There is no garbage collector. */
  async removeChildren(namespace: string): Promise<void> {
    for (const child of CHILDREN) await this.#removeAll(CHILD_RESOURCES[child], namespace);
  }

  [Symbol.dispose](): void {
    this.#stop.abort();
  }

  async #removeAll(resource: Resource, namespace: string): Promise<void> {
    const path = resourcePath(resource, { namespace });
    await this.transport.request({ method: "DELETE", path, timeoutMs: COLLECTION_TIMEOUT_MS });
  }

  async #watch(): Promise<void> {
    const heads = new Cache<Head>({
      ...{ transport: this.transport, resource: EGRESS_RESOURCE, namespace: NAMESPACE, logger },
      parse: (raw) => Head.parse(raw),
    });
    heads.onChange(({ type, object }) => {
      if (type !== "deleted" && isSettled(object)) this.#settled.add(object.metadata.name);
      else this.#settled.delete(object.metadata.name);
    });
    void heads.run(this.#stop.signal);
    await heads.whenSynced();
  }
}

export function egressName(index: number): string {
  return `egress-${index}`;
}

/** The status is written last, when all children are applied. */
function isSettled({ metadata, status }: Head): boolean {
  return (
    status?.observedGeneration === metadata.generation &&
    status.conditions.some((condition) => condition.type === "Degraded" && condition.status === "False")
  );
}
