import { CLUSTER_RANGES_CONFIG_MAP } from "@egress-nat/crds";
import type { RequestOptions, Transport } from "@egress-nat/kube";
import { FakeTransport, page, watch } from "@egress-nat/kube/testing/fake-transport";
import { createLogger } from "@egress-nat/program";
import { expect, test } from "vitest";
import { createCaches } from "../caches.ts";
import { PublishedRanges } from "./published.ts";
import { clusterRangesReconciler } from "./reconcile.ts";

const metadata = { namespace: "egress-nat", name: CLUSTER_RANGES_CONFIG_MAP, uid: "u" };
const logger = createLogger({ name: "test", level: "silent" });

test.each([
  [
    "in place of the version of them that was seen",
    [{ metadata: { ...metadata, resourceVersion: "7" } }],
    "7",
  ],
  [
    "in place of what nobody understands",
    [{ metadata: { ...metadata, resourceVersion: "7" }, data: { ranges: "10.244.0.0/33\n" } }],
    "7",
  ],
  // No object has that one.
  ["where none were seen, in place of nothing", [], "1"],
])(
  "the networks of the cluster are published %s: a former leader's are not put back",
  async (_, seen, version) => {
    const asked: RequestOptions[] = [];
    const transport: Transport = {
      request: async <T>(options: RequestOptions) => {
        asked.push(options);
        return { metadata: { ...metadata, resourceVersion: "8" } } as T;
      },
      stream: () => Promise.reject(new Error("nothing is watched")),
      close: () => undefined,
    };
    const stop = new AbortController();
    const listed = new FakeTransport([page("7", seen), watch([], "lasts")]);
    const caches = createCaches({
      ...{ transport: listed, logger, namespace: "egress-nat", serviceAddresses: false },
    });
    const published = new PublishedRanges(caches.clusterRanges);
    const running = caches.clusterRanges.run(stop.signal);
    await caches.clusterRanges.whenSynced(stop.signal);
    const sources = { services: [], pods: [], nodes: [], serviceAddresses: [] };
    const known = () => ({ ...sources, values: ["10.244.0.0/16"] });
    const reconciler = clusterRangesReconciler(transport, "egress-nat", known, published);
    await reconciler.reconcile(reconciler.gather("cluster-ranges"), {
      key: "cluster-ranges",
      logger,
      signal: stop.signal,
    });
    expect(asked).toMatchObject([
      { body: { metadata: { resourceVersion: version }, data: { ranges: "10.244.0.0/16\n" } } },
    ]);
    stop.abort();
    await running;
  },
);
