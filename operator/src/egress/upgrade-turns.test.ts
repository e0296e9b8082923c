import { KubeError } from "@egress-nat/kube";
import { beforeEach, describe, expect, test } from "vitest";
import type { ObservedDeployment } from "./observed.ts";
import { templateOf } from "./rollout.ts";
import { UpgradeTurns } from "./upgrade-turns.ts";

const NEW = "new";

const REFUSAL = new KubeError("PATCH: 422 Invalid", { code: "Invalid", status: 422, retryable: false });

let deployments: Map<string, ObservedDeployment>;
let woken: string[];
let turns: UpgradeTurns;

beforeEach(() => {
  deployments = new Map(
    ["a", "b", "c", "d"].map((key) => [key, deployment("old", "NewReplicaSetAvailable")]),
  );
  woken = [];
  turns = operatorWith(2);
});

function operatorWith(limit: number): UpgradeTurns {
  return new UpgradeTurns({
    limit,
    deployment: (key) => deployments.get(key),
    deployments: () => deployments,
    wake: (key) => woken.push(key),
  });
}

function deployment(template: string, reason: string): ObservedDeployment {
  const upgrade = template === NEW ? { "coil.cybozu.com/upgrade": template } : {};
  const annotations = { "coil.cybozu.com/template-digest": template, ...upgrade };
  const counts = { replicas: 1, readyReplicas: 1, availableReplicas: 1, updatedReplicas: 1 };
  return {
    ...{ apiVersion: "apps/v1", kind: "Deployment", spec: { replicas: 1 } },
    metadata: {
      ...{ name: "nat", namespace: "internet", uid: "u", resourceVersion: "1" },
      generation: 1,
      annotations,
    },
    status: {
      ...{ observedGeneration: 1, ...counts },
      conditions: [{ type: "Progressing", status: "True", reason, message: "" }],
    },
  };
}

const take = (key: string, isAvailable = true) =>
  turns.take(key, isAvailable, templateOf(deployments.get(key) ?? expect.fail()));

/** As the watch shows it. */
function see(key: string, template: string, reason: string): void {
  deployments.set(key, deployment(template, reason));
  turns.seen(key);
}

describe("turns of an upgrade", () => {
  test("are given to so many at a time, also before the store shows it", () => {
    expect(["a", "b", "c"].map((key) => take(key))).toEqual([true, true, false]);
    expect(take("a")).toBe(true);
    see("a", NEW, "ReplicaSetUpdated");
    see("b", NEW, "ReplicaSetUpdated");
    expect(take("c")).toBe(false);
    expect(woken).toEqual([]);
  });

  test("come to who waits when one is over", () => {
    for (const key of ["a", "b", "c", "d"]) take(key);
    see("a", NEW, "NewReplicaSetAvailable");
    expect(woken).toEqual(["c"]);
    expect(take("c")).toBe(true);
    expect(take("d")).toBe(false);
  });

  test("come to who waits when a watch that was away skips what they were for", () => {
    for (const key of ["a", "b", "c", "d"]) take(key);
    for (const key of ["a", "b"]) see(key, "by its author meanwhile", "ReplicaSetUpdated");
    expect(woken).toEqual(["c", "d"]);
    expect([take("c"), take("d")]).toEqual([true, true]);
  });

  test("come to who waits when one is refused", () => {
    for (const key of ["a", "b", "c"]) take(key);
    turns.giveBack("b");
    expect(woken).toEqual(["c"]);
  });

  test("leave who has failed with its failure until it has another one", () => {
    for (const key of ["a", "b"]) take(key);
    turns.failed("b", REFUSAL);
    turns.giveBack("b");
    take("c");
    expect(take("b")).toBe(false);
    expect(turns.failure("b")).toBe(REFUSAL);
    see("a", NEW, "NewReplicaSetAvailable");
    expect(take("b")).toBe(true);
    expect(turns.failure("b")).toBeUndefined();
  });

  test("are kept by nobody who does not count any more, before the store shows what they were for", () => {
    for (const key of ["a", "b"]) take(key);
    // As when it is paused, or gone.
    deployments.delete("a");
    expect([take("c"), take("d")]).toEqual([true, false]);
  });

  test("are not kept for who is gone while it waits", () => {
    for (const key of ["a", "b", "c"]) take(key);
    take("d", false);
    for (const key of ["c", "d"]) {
      deployments.delete(key);
      turns.seen(key);
    }
    for (const key of ["a", "b"]) see(key, NEW, "NewReplicaSetAvailable");
    expect(woken).toEqual([]);
  });

  test("are kept by an upgrade that does not get ready: it is not spread", () => {
    for (const key of ["a", "b", "c"]) take(key);
    see("a", NEW, "ProgressDeadlineExceeded");
    see("b", NEW, "ProgressDeadlineExceeded");
    turns = operatorWith(2);
    expect(take("c")).toBe(false);
  });

  test("are not taken by what authors have rolled out, and what fails later", () => {
    deployments.set("a", deployment("old", "ReplicaSetUpdated"));
    deployments.set("b", deployment("old", "ProgressDeadlineExceeded"));
    expect(["c", "d"].map((key) => take(key))).toEqual([true, true]);
  });

  test("come last to those that nobody is served by, and keep nobody waiting", () => {
    expect(take("a", false)).toBe(false);
    expect(["b", "c", "d"].map((key) => take(key))).toEqual([true, true, false]);
    expect(take("a", false)).toBe(false);
    see("b", NEW, "NewReplicaSetAvailable");
    expect(woken.splice(0)).toEqual(["d"]);
    expect(take("d")).toBe(true);
    see("c", NEW, "NewReplicaSetAvailable");
    expect(woken).toEqual([]);
    see("d", NEW, "NewReplicaSetAvailable");
    expect(woken).toEqual(["a"]);
    expect(take("a", false)).toBe(true);
    expect(take("b")).toBe(true);
  });
});
