import { CLUSTER_RANGES_CONFIG_MAP, ClusterRanges } from "@egress-nat/crds";
import type { RequestOptions, Transport } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { expect, test } from "vitest";
import { clusterRangesWorld } from "./api.ts";
import { Caches } from "./caches.ts";
import { reconcileClusterRanges } from "./cluster-ranges/reconcile.ts";

const metadata = { namespace: "egress-nat", name: CLUSTER_RANGES_CONFIG_MAP, uid: "u" };

test.each([
  ["in place of the version of them that was seen", "7"],
  // No object has that one.
  ["where none were seen, in place of nothing", undefined],
])("the networks of the cluster are published %s: a former leader's are not put back", async (_, seen) => {
  const asked: RequestOptions[] = [];
  const transport: Transport = {
    request: async <T>(options: RequestOptions) => {
      asked.push(options);
      return { metadata: { ...metadata, resourceVersion: "8" } } as T;
    },
    stream: () => Promise.reject(new Error("nothing is watched")),
    close: () => undefined,
  };
  const caches = new Caches("egress-nat");
  if (seen !== undefined)
    caches.clusterRanges.store.put(ClusterRanges.parse({ metadata: { ...metadata, resourceVersion: seen } }));
  const sources = { services: [], pods: [], nodes: [], serviceAddresses: [] };
  const world = clusterRangesWorld(transport, "egress-nat", caches, () => ({
    ...{ ...sources, values: ["10.244.0.0/16"] },
  }));
  const logger = createLogger({ name: "test", level: "silent" });
  await reconcileClusterRanges(world, logger, new AbortController().signal);
  expect(asked).toMatchObject([
    { body: { metadata: { resourceVersion: seen ?? "1" }, data: { ranges: "10.244.0.0/16\n" } } },
  ]);
});
