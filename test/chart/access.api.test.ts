import { EGRESS_LABEL, sliceName } from "@egress-nat/crds";
import { createTransport, loadCredentials, type RequestOptions, type Transport } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startControllers } from "../bed/api/controllers.ts";
import { apiVersion, InstalledChart } from "./installed-chart.ts";
import { startOperator } from "./running-operator.ts";

const NAMESPACE = "access-test";
const NODE = "access-node";
/** Where the programs have nothing of their own. */
const ELSEWHERE = "kube-system";

const EGRESSES = "/apis/coil.cybozu.com/v2";
const RBAC = "/apis/rbac.authorization.k8s.io/v1";

const eventually = { timeout: 60_000, interval: 200 };

const egress = (name: string, namespace = NAMESPACE) => ({
  apiVersion,
  kind: "Egress",
  metadata: { name, namespace },
  spec: { destinations: ["192.0.2.0/24"] },
});

let chart: InstalledChart;
let nodeAgent: string;

beforeAll(async () => {
  chart = await InstalledChart.in(NAMESPACE);
  nodeAgent = await chart.agentOn(NODE);
  // The operator makes the account of the gateways, and their Role.
  await using _operator = await startOperator(chart);
  await chart.create(egress("nat"));
  const made = async () => (await chart.run(["get", "rolebinding", "nat", "-n", NAMESPACE])).exitCode === 0;
  await waitUntil(made, { what: "the access of the gateways of Egress nat", timeoutMs: 60_000 });
});

afterAll(() => chart.uninstall());

type Attempt = [what: string, ...request: [method: RequestOptions["method"], path: string, body?: object]];

const pod = { spec: { containers: [{ name: "main", image: "debian" }] } };
const everything = [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }];
const labelled = { metadata: { labels: { mine: "yes" } } };

/** What no program of the product has any business with. */
const FORBIDDEN_TO_ALL: readonly Attempt[] = [
  ["read all Secrets", "GET", "/api/v1/secrets"],
  ["read a Secret beside it", "GET", `/api/v1/namespaces/${NAMESPACE}/secrets/some`],
  ["read ConfigMaps of others", "GET", `/api/v1/namespaces/${ELSEWHERE}/configmaps`],
  ["list pods", "GET", "/api/v1/pods"],
  ["watch pods beside it", "GET", `/api/v1/namespaces/${NAMESPACE}/pods?watch=true`],
  ["make a pod", "POST", `/api/v1/namespaces/${NAMESPACE}/pods`, { metadata: { name: "made" }, ...pod }],
  ["delete a pod", "DELETE", `/api/v1/namespaces/${NAMESPACE}/pods/some`],
  ["run a command in a pod", "POST", `/api/v1/namespaces/${NAMESPACE}/pods/some/exec?command=id`],
  ["attach itself to a pod", "POST", `/api/v1/namespaces/${NAMESPACE}/pods/some/attach`],
  ["reach a pod by the apiserver's proxy", "GET", `/api/v1/namespaces/${NAMESPACE}/pods/some/proxy/`],
  ["add a debug container", "PATCH", `/api/v1/namespaces/${NAMESPACE}/pods/some/ephemeralcontainers`, {}],
  ["ask kubelet for anything", "GET", `/api/v1/nodes/${NODE}/proxy/pods`],
  ["issue a token", "POST", `/api/v1/namespaces/${ELSEWHERE}/serviceaccounts/default/token`, {}],
  ["change a node", "PATCH", `/api/v1/nodes/${NODE}`, labelled],
  ["delete a node", "DELETE", `/api/v1/nodes/${NODE}`],
  ["make an Egress", "POST", `${EGRESSES}/namespaces/${NAMESPACE}/egresses`, egress("made")],
  ["change an Egress", "PATCH", `${EGRESSES}/namespaces/${NAMESPACE}/egresses/nat`, labelled],
  ["scale an Egress", "PATCH", `${EGRESSES}/namespaces/${NAMESPACE}/egresses/nat/scale`, {}],
  ["delete an Egress", "DELETE", `${EGRESSES}/namespaces/${NAMESPACE}/egresses/nat`],
  ["delete all slices", "DELETE", `${EGRESSES}/namespaces/${NAMESPACE}/egressclientslices`],
  ["make a ClusterRole", "POST", `${RBAC}/clusterroles`, { metadata: { name: "made" }, rules: everything }],
  ["change its own ClusterRole", "PATCH", `${RBAC}/clusterroles/egress-nat-operator`, { rules: everything }],
  ["bind a ClusterRole", "POST", `${RBAC}/clusterrolebindings`, {}],
  ["delete a Deployment", "DELETE", `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/egress-nat-operator`],
  ["delete a DaemonSet", "DELETE", `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets/egress-nat-node-agent`],
  [
    "lift a policy",
    "DELETE",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/egress-nat-slices-of-own-node",
  ],
  ["change a CRD", "PATCH", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/egresses", labelled],
  ["delete a namespace", "DELETE", `/api/v1/namespaces/${ELSEWHERE}`],
];

/** The three programs, each with a token of its own. */
describe.each<[program: string, kubeconfig: () => Promise<string>, own: readonly Attempt[]]>([
  [
    "the operator",
    () => chart.withToken("egress-nat-operator", "operator"),
    [
      ["change a slice", "PATCH", `${EGRESSES}/namespaces/${NAMESPACE}/egressclientslices/nat.${NODE}`, {}],
      ["make a slice", "POST", `${EGRESSES}/namespaces/${NAMESPACE}/egressclientslices`, {}],
      ["delete a Service", "DELETE", `/api/v1/namespaces/${NAMESPACE}/services/nat`],
      ["change a namespace", "PATCH", `/api/v1/namespaces/${NAMESPACE}`, labelled],
      ["make another Lease", "POST", `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases`, {}],
      [
        "take a Lease of others",
        "PUT",
        `/apis/coordination.k8s.io/v1/namespaces/${ELSEWHERE}/leases/kube-controller-manager`,
        {},
      ],
      [
        "make a Role with more rights than it has",
        "POST",
        `${RBAC}/namespaces/${ELSEWHERE}/roles`,
        { metadata: { name: "made" }, rules: [{ apiGroups: [""], resources: ["secrets"], verbs: ["get"] }] },
      ],
      [
        "give a gateway's Role more rights than it has",
        "PATCH",
        `${RBAC}/namespaces/${NAMESPACE}/roles/nat`,
        { rules: everything },
      ],
      [
        "bind itself to an administrator's role",
        "POST",
        `${RBAC}/namespaces/${NAMESPACE}/rolebindings`,
        {
          metadata: { name: "made" },
          roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "cluster-admin" },
          subjects: [{ kind: "ServiceAccount", name: "egress-nat-operator", namespace: NAMESPACE }],
        },
      ],
    ],
  ],
  [
    "a node agent",
    async () => nodeAgent,
    [
      ["read nodes", "GET", `/api/v1/nodes/${NODE}`],
      ["read a pod", "GET", `/api/v1/namespaces/${NAMESPACE}/pods/some`],
      ["read namespaces", "GET", "/api/v1/namespaces"],
      ["read Services", "GET", `/api/v1/namespaces/${NAMESPACE}/services`],
      ["write the status of a pod", "PATCH", `/api/v1/namespaces/${NAMESPACE}/pods/some/status`, {}],
      [
        "write the status of an Egress",
        "PATCH",
        `${EGRESSES}/namespaces/${NAMESPACE}/egresses/nat/status`,
        {},
      ],
      ["make a Role", "POST", `${RBAC}/namespaces/${NAMESPACE}/roles`, { metadata: { name: "made" } }],
    ],
  ],
  [
    "a gateway",
    () => chart.withToken("nat", "gateway"),
    [
      ["read Egresses of other namespaces", "GET", `${EGRESSES}/egresses`],
      ["read slices of other namespaces", "GET", `${EGRESSES}/namespaces/${ELSEWHERE}/egressclientslices`],
      ["make a slice", "POST", `${EGRESSES}/namespaces/${NAMESPACE}/egressclientslices`, {}],
      ["change a slice", "PATCH", `${EGRESSES}/namespaces/${NAMESPACE}/egressclientslices/nat.${NODE}`, {}],
      ["delete a slice", "DELETE", `${EGRESSES}/namespaces/${NAMESPACE}/egressclientslices/nat.${NODE}`],
      [
        "write the status of its Egress",
        "PATCH",
        `${EGRESSES}/namespaces/${NAMESPACE}/egresses/nat/status`,
        {},
      ],
      ["read nodes", "GET", "/api/v1/nodes"],
      ["read ConfigMaps beside it", "GET", `/api/v1/namespaces/${NAMESPACE}/configmaps`],
      ["make a Role", "POST", `${RBAC}/namespaces/${NAMESPACE}/roles`, { metadata: { name: "made" } }],
      ["change an event", "PATCH", `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events/some`, {}],
      ["write an event elsewhere", "POST", `/apis/events.k8s.io/v1/namespaces/${ELSEWHERE}/events`, {}],
    ],
  ],
])("%s may not", (_, kubeconfigOf, own) => {
  let kubeconfig: string;
  let transport: Transport;

  beforeAll(async () => {
    kubeconfig = await kubeconfigOf();
    const logger = createLogger({ name: "test", level: "silent" });
    transport = createTransport({ credentials: await loadCredentials({ kubeconfig }), logger });
  });

  afterAll(() => transport.close());

  test.each([...FORBIDDEN_TO_ALL, ...own])("%s", async (_what, method, url, body) => {
    const [path = "", query = ""] = url.split("?");
    const contentType = method === "PATCH" ? "application/merge-patch+json" : undefined;
    const attempt = transport.request({
      ...{ method, path, body, contentType },
      query: Object.fromEntries(new URLSearchParams(query)),
    });
    await expect(attempt).rejects.toMatchObject({ code: "Forbidden" });
  });

  test("speak for anybody else", async () => {
    const { all } = await chart.run(["get", "egresses", "-A", "--as=admin"], { kubeconfig });
    expect(all).toContain('cannot impersonate resource "users"');
  });
});

describe("an EgressClientSlice", () => {
  const BOSS = "boss";
  const CLIENTS = [
    {
      ...{ namespace: "default", name: "client", uid: "u", addresses: ["10.244.0.7"] },
      addedAt: "2026-01-02T03:04:05.678901Z",
    },
  ];
  const REFUSAL =
    "only node agents make EgressClientSlices and change their nodeName, clients, clientCount, suspects and labels";
  const name = sliceName("nat", NODE);

  /** Who may do anything in the namespace, and nothing outside. */
  const asBoss = (args: readonly string[], input?: string) =>
    chart.run([...args, "-n", NAMESPACE, `--as=${BOSS}`], input === undefined ? {} : { input });
  const patch = (change: object) =>
    asBoss(["patch", "egressclientslice", name, "--type=merge", "-p", JSON.stringify(change)]);

  beforeAll(async () => {
    await chart.create({
      ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role" },
      ...{ metadata: { name: BOSS, namespace: NAMESPACE }, rules: everything },
    });
    await chart.run(["create", "rolebinding", BOSS, `--role=${BOSS}`, `--user=${BOSS}`, "-n", NAMESPACE]);
    await chart.run(["create", "-f", "-"], { input: chart.slice("nat", NODE), kubeconfig: nodeAgent });
    // The apiserver follows a new policy after a moment.
    const answer = async () =>
      (await asBoss(["create", "--dry-run=server", "-f", "-"], chart.slice("other", NODE))).all;
    await waitUntil(async () => (await answer()).includes(REFUSAL), {
      what: "the policy on slices to hold",
      timeoutMs: 60_000,
      explain: answer,
    });
  });

  const STRANGER = {
    apiVersion: "v1",
    kind: "ConfigMap",
    name: "gone",
    uid: "0b51fdb6-94a6-4a4c-a2d1-1a3a0ef39ff7",
  };

  test.each([
    ["names another client", { clients: CLIENTS }, REFUSAL],
    ["says how many clients it has", { clientCount: 0 }, REFUSAL],
    [
      "reports a gateway",
      { suspects: [{ gateway: "nat-1", state: "Down", since: "2026-01-02T03:04:05Z" }] },
      REFUSAL,
    ],
    ["moves its clients to another Egress", { metadata: { labels: { [EGRESS_LABEL]: "other" } } }, REFUSAL],
    [
      "would hold its end up",
      { metadata: { finalizers: ["example.com/mine"] } },
      "only node agents add finalizers",
    ],
    [
      "gives it an owner that is gone",
      { metadata: { ownerReferences: [STRANGER] } },
      "only node agents add owners",
    ],
  ])("is not changed by a namespace's administrator who %s", async (_, change, refusal) => {
    expect((await patch(change)).all).toContain(refusal);
  });

  test("gives up an owner to whoever may change it, as to the garbage collector", async () => {
    const owned = ["egressclientslice", sliceName("owned", NODE)] as const;
    const input = chart.slice("owned", NODE, {
      ownerReferences: [STRANGER],
      finalizers: ["example.com/mine"],
    });
    await chart.run(["create", "-f", "-"], { input, kubeconfig: nodeAgent });
    const change = { metadata: { ownerReferences: null, finalizers: null } };
    const { exitCode, all } = await asBoss(["patch", ...owned, "--type=merge", "-p", JSON.stringify(change)]);
    expect(exitCode, all).toBe(0);
  });

  test("is left to its agent by whoever adds nothing to it", async () => {
    const { exitCode, all } = await patch({ metadata: { annotations: { seen: "yes" } } });
    expect(exitCode, all).toBe(0);
  });

  test("may be made by who could lift the policy, an administrator of the cluster", async () => {
    const input = chart.slice("by-hand", "any-node");
    const { exitCode, all } = await chart.run(["create", "-f", "-"], { input });
    expect(exitCode, all).toBe(0);
  });

  test("may be deleted by whoever has the right to", async () => {
    const { exitCode, all } = await asBoss(["delete", "egressclientslice", name]);
    expect(exitCode, all).toBe(0);
  });
});

/** As many clients as a slice may have: what a policy does about each of them has a limit. */
const CROWD = Array.from({ length: 1000 }, (_, index) => ({
  ...{ namespace: "default", name: `client-${index}`, uid: `u${index}` },
  addresses: [`10.244.${index >> 8}.${index & 255}`, `fd00:244::${index.toString(16)}`],
  addedAt: "2026-01-02T03:04:05.678901Z",
}));

describe("with Kubernetes' own controllers", () => {
  let controllers: AsyncDisposable;

  beforeAll(async () => {
    const names = ["clusterrole-aggregation", "garbage-collector", "namespace"];
    controllers = await startControllers(names.map((name) => `${name}-controller`));
  });

  afterAll(() => controllers[Symbol.asyncDispose]());

  describe.each([
    ["view", { writes: false }],
    ["edit", { writes: true }],
    ["admin", { writes: true }],
  ])("a user with the role %s in a namespace", (role, { writes }) => {
    const user = `user-who-may-${role}`;
    const may = async (verb: string, plural: string, ...options: readonly string[]) => {
      const question = ["auth", "can-i", verb, `${plural}.coil.cybozu.com`, "-n", NAMESPACE, ...options];
      return (await chart.run([...question, `--as=${user}`])).stdout === "yes";
    };

    beforeAll(async () => {
      const binding = ["create", "rolebinding", user, `--clusterrole=${role}`, `--user=${user}`];
      await chart.run([...binding, "-n", NAMESPACE]);
      await waitUntil(() => may(writes ? "create" : "list", "egresses"), {
        what: `the role ${role} to hold what the chart adds to it`,
        timeoutMs: 60_000,
      });
    });

    test(`may read Egresses and slices, and ${writes ? "write Egresses" : "write nothing"}`, async () => {
      const rights = async (plural: string) => {
        const verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
        const answers = await Promise.all(verbs.map((verb) => may(verb, plural)));
        return verbs.filter((_, index) => answers[index]);
      };
      const read = ["get", "list", "watch"];
      const write = ["create", "update", "patch", "delete"];
      expect(await rights("egresses")).toEqual([...read, ...(writes ? write : [])]);
      expect(await rights("egressclientslices")).toEqual(read);
      expect(await may("patch", "egresses", "--subresource=scale")).toBe(writes);
      expect(await may("patch", "egresses", "--subresource=status")).toBe(false);
    });

    test(`${writes ? "makes" : "does not make"} an Egress, and no slice`, async () => {
      const make = (input: string) => chart.run(["create", "-f", "-", `--as=${user}`], { input });
      const made = await make(JSON.stringify(egress(`made-by-${role}`)));
      expect(made.exitCode, made.all).toBe(writes ? 0 : 1);
      expect((await make(chart.slice("nat", "any-node"))).all).toContain(
        'cannot create resource "egressclientslices"',
      );
    });
  });

  test("slices end with their Egress, or outlive it as an orphan", async () => {
    const left = async () =>
      (await chart.run(["get", "egressclientslices", "-n", NAMESPACE, "-o", "name"])).all;
    for (const [name, cascade, remains] of [
      ["collected", "background", false],
      ["ending", "foreground", false],
      ["orphaning", "orphan", true],
    ] as const) {
      await chart.create(egress(name));
      const { stdout: uid } = await chart.run([
        ...["get", "egress", name, "-n", NAMESPACE, "-o", "jsonpath={.metadata.uid}"],
      ]);
      const owner = { apiVersion, kind: "Egress", name, uid, controller: true, blockOwnerDeletion: true };
      const empty = JSON.parse(chart.slice(name, NODE, { ownerReferences: [owner] }));
      const input = JSON.stringify({ ...empty, clients: CROWD });
      await chart.run(["create", "-f", "-"], { input, kubeconfig: nodeAgent });
      expect(await left()).toContain(sliceName(name, NODE));
      await chart.run(["delete", "egress", name, "-n", NAMESPACE, `--cascade=${cascade}`]);
      const isLeft = expect.poll(left, eventually);
      await (remains ? isLeft.toContain(sliceName(name, NODE)) : isLeft.not.toContain(sliceName(name, NODE)));
    }
  });

  test("a namespace with an Egress and slices comes to its end", async () => {
    const doomed = "access-test-doomed";
    await chart.run(["create", "namespace", doomed]);
    await chart.create(egress("nat", doomed));
    const input = chart.slice("nat", NODE, {}, doomed);
    const { exitCode, all } = await chart.run(["create", "-f", "-"], { input, kubeconfig: nodeAgent });
    expect(exitCode, all).toBe(0);
    await chart.run(["delete", "namespace", doomed, "--wait=false"]);
    const gone = async () => (await chart.run(["get", "namespace", doomed])).all;
    await expect.poll(gone, eventually).toContain("not found");
  });
});
