import { sliceName } from "@egress-nat/crds";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiVersion, InstalledChart } from "./installed-chart.ts";
import { find, render } from "./render.ts";
import { startOperator } from "./running-operator.ts";

const NAMESPACE = "operator-children-test";
const NODE = "operator-children-node";
const POLICY = "egress-nat-operator-children";
const REFUSAL = "the operator may write only what an Egress controls";

const template = {
  metadata: { labels: { app: "some" } },
  spec: { containers: [{ name: "main", image: "debian" }] },
};

/** The kinds of objects that an Egress is made of, as anybody may have them. */
const KINDS = [
  { apiVersion: "v1", kind: "Service", spec: { ports: [{ port: 80 }] } },
  { apiVersion: "v1", kind: "ServiceAccount" },
  {
    ...{ apiVersion: "apps/v1", kind: "Deployment" },
    spec: { selector: { matchLabels: template.metadata.labels }, template },
  },
  { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", rules: [] },
  {
    ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "RoleBinding" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "of-an-egress" },
  },
  {
    ...{ apiVersion: "policy/v1", kind: "PodDisruptionBudget" },
    spec: { selector: { matchLabels: template.metadata.labels } },
  },
];

let chart: InstalledChart;
let kubeconfig: string;

const named = (object: object, name: string, ownerReferences: readonly object[] = []) => ({
  ...object,
  metadata: { name, namespace: NAMESPACE, ownerReferences },
});

/** An owner as the operator names it, with what a test cares about in place of that. */
const owner = (fields: object = {}) => ({
  ...{ apiVersion, kind: "Egress", name: "nat", uid: "0b51fdb6-94a6-4a4c-a2d1-1a3a0ef39ff7" },
  ...{ controller: true, ...fields },
});

/** With the operator's token. */
const attempt = async (args: readonly string[], object?: object) =>
  (
    await chart.run([...args, "-n", NAMESPACE], {
      kubeconfig,
      ...(object !== undefined && { input: JSON.stringify(object) }),
    })
  ).all;

const patch = (kind: string, name: string, change: object) =>
  attempt(["patch", kind, name, "--type=merge", "-p", JSON.stringify(change)]);

beforeAll(async () => {
  chart = await InstalledChart.in(NAMESPACE);
  kubeconfig = await chart.withToken("egress-nat-operator", "operator-token");
  await chart.create(...KINDS.map((object) => named(object, "of-somebody")));
  await chart.create(...KINDS.map((object) => named(object, "of-an-egress", [owner()])));
  // The apiserver follows a new policy after a moment.
  const answer = () => attempt(["create", "--dry-run=server", "-f", "-"], named(KINDS[0] ?? {}, "some"));
  await waitUntil(async () => (await answer()).includes(REFUSAL), {
    what: "the policy on the operator's objects to hold",
    timeoutMs: 60_000,
    explain: answer,
  });
});

afterAll(() => chart.uninstall());

describe.each(KINDS)("with the operator's account, a $kind", (object) => {
  const { kind } = object;

  test.each([
    ["no owner", []],
    ["an owner that does not control it", [owner({ controller: false })]],
    ["a controller of another kind", [owner({ apiVersion: "apps/v1", kind: "Deployment" })]],
    ["a controller of coil's own kinds", [owner({ kind: "BlockRequest" })]],
  ])("is not made with %s", async (_, owners) => {
    expect(await attempt(["create", "-f", "-"], named(object, "made", owners))).toContain(REFUSAL);
    const apply = ["apply", "--server-side", "-f", "-"];
    expect(await attempt(apply, named(object, "made", owners))).toContain(REFUSAL);
  });

  test("that is somebody's is neither changed nor taken over", async () => {
    const labels = { mine: "yes" };
    expect(await patch(kind, "of-somebody", { metadata: { labels } })).toContain(REFUSAL);
    const takeOver = { metadata: { ownerReferences: [owner()] } };
    expect(await patch(kind, "of-somebody", takeOver)).toContain(
      `${REFUSAL}, not the ${kind} ${NAMESPACE}/of-somebody`,
    );
  });

  test("of an Egress is changed, and stays the Egress's", async () => {
    expect(await patch(kind, "of-an-egress", { metadata: { labels: { mine: "yes" } } })).toContain("patched");
    expect(await patch(kind, "of-an-egress", { metadata: { ownerReferences: null } })).toContain(REFUSAL);
  });
});

test("with the operator's account, a PodDisruptionBudget is deleted only where it is an Egress's", async () => {
  expect(await attempt(["delete", "pdb", "of-somebody"])).toContain(REFUSAL);
  expect(await attempt(["delete", "pdb", "of-an-egress"])).toContain("deleted");
});

test("people and other programs are not held to it", async () => {
  const { all } = await chart.run(["label", "service", "of-somebody", "-n", NAMESPACE, "theirs=yes"]);
  expect(all).toContain("labeled");
});

describe("the operator", () => {
  const seen = async (text: string, ...args: readonly string[]) => {
    const look = async () => (await chart.run([...args, "-n", NAMESPACE])).all;
    await expect.poll(look, { timeout: 60_000, interval: 100 }).toContain(text);
  };

  test("makes, changes and deletes what an Egress asks for", async () => {
    await using _operator = await startOperator(chart);
    const spec = { destinations: ["::/0"], replicas: 1, podDisruptionBudget: { minAvailable: 1 } };
    await chart.create({
      apiVersion,
      kind: "Egress",
      metadata: { name: "work", namespace: NAMESPACE },
      spec,
    });
    await seen("poddisruptionbudget.policy/work", "get", "pdb", "-o", "name");
    await seen("deployment.apps/work", "get", "deployment", "-o", "name");

    const change = JSON.stringify({ spec: { replicas: 3, podDisruptionBudget: null } });
    await chart.run(["patch", "egress", "work", "-n", NAMESPACE, "--type=merge", "-p", change]);
    await seen("3", "get", "deployment", "work", "-o", "jsonpath={.spec.replicas}");
    await seen("NotFound", "get", "pdb", "work");
  });

  test("deletes slices that remain of an Egress that was made anew", async () => {
    await chart.agentOn(NODE);
    await chart.create({
      ...{ apiVersion, kind: "Egress", metadata: { name: "anew", namespace: NAMESPACE } },
      spec: { destinations: ["::/0"] },
    });
    const ownerReferences = [owner({ name: "anew" })];
    await chart.create(JSON.parse(chart.slice("anew", NODE, { ownerReferences })));
    await using _operator = await startOperator(chart);
    await seen("NotFound", "get", "egressclientslice", sliceName("anew", NODE));
  });

  test("says of a name that is taken what it said without the policy", async () => {
    await using _operator = await startOperator(chart);
    const spec = { destinations: ["::/0"] };
    await chart.create({
      ...{ apiVersion, kind: "Egress", metadata: { name: "of-somebody", namespace: NAMESPACE }, spec },
    });
    await seen("NameConflict", "get", "egress", "of-somebody", "-o", "yaml");
    await seen("yes", "get", "service", "of-somebody", "-o", "jsonpath={.metadata.labels.theirs}");
  });
});

test("the policy knows every kind that the operator's ClusterRole lets it change or make", async () => {
  const objects = await render();
  const pairs = (rules: { apiGroups: string[]; resources: string[] }[]) =>
    rules.flatMap(({ apiGroups, resources }) =>
      apiGroups.flatMap((group) => resources.map((resource) => `${resource}.${group}`)),
    );
  const { rules } = find(objects, "ClusterRole", "egress-nat-operator");
  const changes = ["create", "update", "patch", "deletecollection"];
  const writable = rules.filter(({ verbs }: { verbs: string[] }) =>
    verbs.some((verb) => changes.includes(verb)),
  );
  const { resourceRules } = find(objects, "ValidatingAdmissionPolicy", POLICY).spec.matchConstraints;
  const others = [
    "egresses/status.coil.cybozu.com",
    "egresses/finalizers.coil.cybozu.com",
    "events.events.k8s.io",
  ];
  expect(pairs(resourceRules).toSorted()).toEqual(
    pairs(writable)
      .filter((pair) => !others.includes(pair))
      .toSorted(),
  );
});
