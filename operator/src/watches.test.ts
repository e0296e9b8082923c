import { EGRESS_LABEL, PAUSE_ROLLOUT_ANNOTATION } from "@egress-nat/crds";
import { type Change, type Controller, EndpointSlice, type KubeObject } from "@egress-nat/kube";
import { FakeTransport } from "@egress-nat/kube/testing/fake-transport";
import { createLogger } from "@egress-nat/program";
import { beforeEach, describe, expect, test } from "vitest";
import { type Caches, createCaches } from "./caches.ts";
import { NodeHead } from "./cluster-ranges/sources.ts";
import { NamespaceHead } from "./egress/namespaces.ts";
import { deploymentOfRelease } from "./egress/testing/children.ts";
import { anEgress } from "./egress/testing/egress.ts";
import { SliceHead } from "./slices/slice-head.ts";
import {
  itself,
  slicesOfGoneNode,
  slicesOfNewEgress,
  specChanged,
  toldOtherwise,
  watchCaches,
} from "./watches.ts";

const head = (name: string, rest: object = {}) => ({ name, uid: name, resourceVersion: "1", ...rest });
const labels = { [EGRESS_LABEL]: "nat" };
const SLICE = SliceHead.parse({
  ...{ metadata: head("nat.n1", { namespace: "internet", labels }), nodeName: "n1", clients: [] },
});
const NODE = NodeHead.parse({ metadata: head("n1") });
const ready = (status: string) =>
  NodeHead.parse({ metadata: head("n1"), status: { conditions: [{ type: "Ready", status }] } });
const BOUNDED = anEgress(
  { allowedNamespaces: { matchLabels: { egress: "yes" } } },
  { metadata: { name: "bounded" }, status: { allowedNamespaces: [] } },
);

const change = <T extends KubeObject>(type: Change<T>["type"], object: T, previous?: T): Change<T> => ({
  ...{ type, key: `internet/${object.metadata.name}`, object },
  ...(previous && { previous }),
});

describe("a change", () => {
  test("is a reason to look at the object itself", () => {
    expect(itself(change("updated", SLICE))).toEqual(["internet/nat.n1"]);
  });

  test.each([
    ["of another spec is one", 8, ["internet/nat"]],
    ["of a status alone is none", 7, []],
  ])("%s to look at an Egress at once", (_, generation, expected) => {
    const later = anEgress({}, { metadata: { generation } });
    expect(specChanged(change("updated", later, anEgress({})))).toEqual(expected);
  });

  test("of an annotation, as that which pauses a rollout, is one to look at an Egress at once", () => {
    const later = anEgress({}, { metadata: { annotations: { [PAUSE_ROLLOUT_ANNOTATION]: "true" } } });
    expect(specChanged(change("updated", later, anEgress({})))).toEqual(["internet/nat"]);
  });

  test("of an Egress that comes or goes is one to look at it at once", () => {
    expect(specChanged(change("added", anEgress({})))).toEqual(["internet/nat"]);
    expect(specChanged(change("deleted", anEgress({})))).toEqual(["internet/nat"]);
  });

  test("of a namespace is one to look at the Egresses that say otherwise of it", () => {
    const namespace = (egress: string) =>
      NamespaceHead.parse({ metadata: head("apps", { labels: { egress } }) });
    const egresses = [BOUNDED, anEgress({})];
    expect(toldOtherwise(change("added", namespace("yes")), egresses)).toEqual(["internet/bounded"]);
    expect(toldOtherwise(change("added", namespace("no")), egresses)).toEqual([]);
    expect(toldOtherwise(change("deleted", namespace("yes")), egresses)).toEqual([]);
  });

  test("by which an Egress is there anew is one to look at the slices of that name", () => {
    const slicesOf = (egress: string) => (egress === "internet/nat" ? [SLICE] : []);
    expect(slicesOfNewEgress(change("added", anEgress({})), slicesOf)).toEqual(["internet/nat.n1"]);
    expect(slicesOfNewEgress(change("updated", anEgress({})), slicesOf)).toEqual([]);
  });

  test("by which a node is gone is one to look at its slices", () => {
    const slicesOf = (node: string) => (node === "n1" ? [SLICE] : []);
    expect(slicesOfGoneNode(change("deleted", NODE), slicesOf)).toEqual(["internet/nat.n1"]);
    expect(slicesOfGoneNode(change("updated", NODE), slicesOf)).toEqual([]);
  });
});

describe("what the operator watches", () => {
  let caches: Caches;
  let asked: string[];

  /** Notes what would be looked at, and after how long. */
  const noting = (controller: string): Pick<Controller, "watch" | "watchOwn"> => {
    const watch: Controller["watch"] = (cache, keysOf, afterMs = 0) =>
      void cache.onChange((happened) => {
        for (const key of keysOf(happened)) asked.push(`${controller} ${key} after ${afterMs} ms`);
      });
    return { watch, watchOwn: watch };
  };

  beforeEach(() => {
    caches = createCaches({
      ...{ transport: new FakeTransport([]), logger: createLogger({ name: "test", level: "silent" }) },
      ...{ namespace: "egress-nat", serviceAddresses: true },
    });
    caches.egresses.store.put(BOUNDED);
    caches.slices.store.put(SLICE);
    asked = [];
    watchCaches(
      { egress: noting("egress"), slice: noting("slice"), clusterRanges: noting("ranges") },
      caches,
    );
  });

  test("an Egress that comes is looked at at once, and so are slices of a former one of its name", () => {
    caches.egresses.store.put(anEgress({}));
    expect(asked).toEqual([
      ...["egress internet/nat after 100 ms", "egress internet/nat after 0 ms"],
      "slice internet/nat.n1 after 0 ms",
    ]);
  });

  test("a child is looked at when the others that are written with it have come, too", () => {
    const { deployment = expect.fail() } = deploymentOfRelease("gateway:1", anEgress({}));
    caches.children.deployment.store.put(deployment);
    expect(asked).toEqual(["egress internet/nat after 100 ms"]);
  });

  test("gateways that come or go are told at once", () => {
    const metadata = head("nat-v4", { namespace: "internet", labels, ownerReferences: [] });
    caches.endpointSlices.store.put({ metadata, endpoints: [] } as never);
    expect(asked).toEqual(["egress internet/nat after 0 ms"]);
  });

  test("clients are counted when a crowd of them has come, and a slice that nobody writes is removed later", () => {
    caches.slices.store.put({ ...SLICE, clients: 3 });
    expect(asked).toEqual(["egress internet/nat after 5000 ms", "slice internet/nat.n1 after 30000 ms"]);
  });

  test("what an agent reports of a gateway is told at once", () => {
    const report = { gateway: "nat-1", state: "Suspect", since: "2026-01-02T03:04:05Z" } as const;
    caches.slices.store.put({ ...SLICE, suspects: [report] });
    expect(asked.splice(0)).toContain("egress internet/nat after 0 ms");
    caches.slices.store.remove("internet/nat.n1");
    expect(asked).toContain("egress internet/nat after 0 ms");
  });

  test("what a node has reported is told anew when nobody hears of the node any more", () => {
    const report = { gateway: "nat-1", state: "Suspect", since: "2026-01-02T03:04:05Z" } as const;
    caches.slices.store.put({ ...SLICE, suspects: [report] });
    caches.nodes.store.put(ready("True"));
    asked = [];
    caches.nodes.store.put(ready("Unknown"));
    expect(asked.splice(0)).toContain("egress internet/nat after 0 ms");
    caches.nodes.store.put(ready("False"));
    expect(asked).toContain("egress internet/nat after 0 ms");
  });

  test("gateways of a node are told anew when nobody hears of it any more", () => {
    const endpointSlice = EndpointSlice.parse({
      metadata: head("nat-v4", { namespace: "internet", labels }),
      endpoints: [{ addresses: ["10.244.1.7"], nodeName: "n1" }],
    });
    caches.endpointSlices.store.put(endpointSlice);
    caches.nodes.store.put(ready("True"));
    asked = [];
    caches.nodes.store.put(ready("Unknown"));
    expect(asked).toContain("egress internet/nat after 0 ms");
  });

  test("a node that goes takes its slices with it, and its networks", () => {
    caches.nodes.store.put(NODE);
    expect(asked.splice(0)).toEqual(["ranges cluster-ranges after 500 ms"]);
    caches.nodes.store.remove("n1");
    expect(asked).toEqual(["slice internet/nat.n1 after 0 ms", "ranges cluster-ranges after 500 ms"]);
  });

  test("networks that are published anew are compared with the gateways of all Egresses", () => {
    const metadata = head("egress-nat-cluster-ranges", { namespace: "egress-nat" });
    caches.clusterRanges.store.put({ metadata } as never);
    expect(asked).toEqual(["egress internet/bounded after 0 ms", "ranges cluster-ranges after 500 ms"]);
  });

  test("a namespace is looked at for the Egresses that allow some", () => {
    caches.namespaces.store.put(
      NamespaceHead.parse({ metadata: head("apps", { labels: { egress: "yes" } }) }),
    );
    expect(asked).toEqual(["egress internet/bounded after 0 ms"]);
  });
});
