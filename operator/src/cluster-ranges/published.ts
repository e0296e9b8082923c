import { ClusterRanges } from "@egress-nat/crds";
import type { Cache } from "@egress-nat/kube";
import { outsideTest } from "./outside.ts";

/** Without data where they are not understood: the operator publishes them in place of that version. */
export function parsePublished(raw: unknown): ClusterRanges {
  return ClusterRanges.safeParse(raw).data ?? ClusterRanges.omit({ data: true }).parse(raw);
}

/** What agents and gateways know of the cluster's networks. */
export class PublishedRanges {
  readonly #cache: Cache<ClusterRanges>;
  #isOutside: (address: string) => boolean = () => false;

  constructor(cache: Cache<ClusterRanges>) {
    this.#cache = cache;
    cache.onChange(() => {
      const { data } = this.current ?? {};
      // Otherwise they are published again in a moment.
      if (data !== undefined) this.#isOutside = outsideTest(data.ranges);
    });
  }

  /** As they are published, without data where nobody understands that; undefined where nothing is. */
  get current(): ClusterRanges | undefined {
    return this.#cache.store.list()[0];
  }

  /** Tells of any address whether it is in no network of the cluster, as far as they are published at this moment. */
  get isOutside(): (address: string) => boolean {
    return this.#isOutside;
  }

  /** Whether an address is in a network that is published as the cluster's. */
  isInside(address: string): boolean {
    return this.current?.data !== undefined && !this.#isOutside(address);
  }
}
