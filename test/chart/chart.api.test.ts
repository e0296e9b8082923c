import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { API_GROUP, API_VERSION } from "@egress-nat/crds";
import { createTransport, loadCredentials, type Transport } from "@egress-nat/kube";
import { EgressOperator, OperatorMetrics } from "@egress-nat/operator";
import { createLogger } from "@egress-nat/program";
import { execa } from "execa";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { stringify } from "yaml";
import { kubectlBinary } from "../cluster/kubectl.ts";
import { render } from "./render.ts";

const NAMESPACE = "chart-test";
const SAMPLES = join(import.meta.dirname, "../../config/samples");
const apiVersion = `${API_GROUP}/${API_VERSION}`;

const logger = createLogger({ name: "test", level: "silent" });

let kubectl: string;
let folder: string;
let transport: Transport;

beforeAll(async () => {
  transport = createTransport({
    credentials: await loadCredentials({ kubeconfig: inject("kubeconfig") }),
    logger,
  });
  kubectl = await kubectlBinary();
  folder = await mkdtemp(join(tmpdir(), "egress-nat-chart-"));
  await run(["create", "namespace", NAMESPACE]);
  const objects = (await render({}, NAMESPACE)).map((object) => stringify(object)).join("---\n");
  const { all, exitCode } = await run(["apply", "-f", "-"], { input: objects });
  expect(exitCode, all).toBe(0);
});

afterAll(async () => {
  const kinds =
    "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings";
  await run(["delete", kinds, "-l", "app.kubernetes.io/part-of=egress-nat"]);
  await run(["delete", "deployments,daemonsets,jobs,pods", "--all", "-n", NAMESPACE, "--wait=false"]);
  transport.close();
  await rm(folder, { recursive: true, force: true });
});

function run(args: readonly string[], options: { input?: string; kubeconfig?: string } = {}) {
  const { input, kubeconfig = inject("kubeconfig") } = options;
  return execa(kubectl, [`--kubeconfig=${kubeconfig}`, ...args], {
    reject: false,
    all: true,
    ...(input !== undefined && { input }),
  });
}

/** A kubeconfig with a token of that account. */
async function withToken(account: string, name: string, options: readonly string[] = []): Promise<string> {
  const { stdout: token } = await run(["create", "token", account, "-n", NAMESPACE, ...options]);
  const kubeconfig = join(folder, name);
  const { stdout } = await run(["config", "view", "--raw", "--flatten", "-o", "json"]);
  const config = JSON.parse(stdout);
  config.users[0].user = { token };
  await writeFile(kubeconfig, JSON.stringify(config));
  return kubeconfig;
}

function slice(name: string, nodeName: string): string {
  const metadata = { name, namespace: NAMESPACE };
  return JSON.stringify({ apiVersion, kind: "EgressClientSlice", metadata, nodeName, clients: [] });
}

describe("the samples", () => {
  test("are accepted by the API server", async () => {
    await run(["create", "serviceaccount", "default"]);
    const files = (await readdir(SAMPLES)).filter((file) => file.endsWith(".yaml"));
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) {
      const { exitCode, all } = await run(["apply", "--dry-run=server", "-f", join(SAMPLES, file)]);
      expect(exitCode, all).toBe(0);
    }
  });
});

describe("the rights", () => {
  const may = async (account: string, verb: string, what: string): Promise<boolean> => {
    const [plural = "", subresource = ""] = what.split("/");
    const [resource, ...group] = plural.split(".");
    const { status } = await transport.request<{ status: { allowed: boolean } }>({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      body: {
        spec: {
          user: `system:serviceaccount:${NAMESPACE}:${account}`,
          resourceAttributes: { verb, group: group.join("."), resource, subresource },
        },
      },
    });
    return status.allowed;
  };

  test.each([
    ["egress-nat-operator", "patch", "deployments.apps"],
    ["egress-nat-operator", "patch", "egresses.coil.cybozu.com/status"],
    ["egress-nat-operator", "delete", "egressclientslices.coil.cybozu.com"],
    ["egress-nat-node-agent", "patch", "egressclientslices.coil.cybozu.com"],
    ["egress-nat-node-agent", "watch", "endpointslices.discovery.k8s.io"],
    ["egress-nat-node-agent", "get", "pods"],
  ])("let %s %s %s", async (account, verb, resource) => {
    expect(await may(account, verb, resource)).toBe(true);
  });

  test.each([
    ["egress-nat-operator", "get", "secrets"],
    ["egress-nat-operator", "list", "pods"],
    ["egress-nat-operator", "create", "pods/exec"],
    ["egress-nat-operator", "delete", "deployments.apps"],
    ["egress-nat-operator", "patch", "egresses.coil.cybozu.com"],
    ["egress-nat-operator", "patch", "egressclientslices.coil.cybozu.com"],
    ["egress-nat-operator", "create", "leases.coordination.k8s.io"],
    ["egress-nat-operator", "create", "clusterroles.rbac.authorization.k8s.io"],
    ["egress-nat-operator", "escalate", "roles.rbac.authorization.k8s.io"],
    ["egress-nat-node-agent", "list", "pods"],
    ["egress-nat-node-agent", "watch", "pods"],
    ["egress-nat-node-agent", "get", "secrets"],
    ["egress-nat-node-agent", "patch", "egresses.coil.cybozu.com"],
    ["egress-nat-node-agent", "create", "pods/exec"],
    ["egress-nat-node-agent", "get", "nodes"],
    ["egress-nat-node-agent", "patch", "nodes"],
    ["egress-nat-node-agent", "deletecollection", "egressclientslices.coil.cybozu.com"],
  ])("do not let %s %s %s", async (account, verb, resource) => {
    expect(await may(account, verb, resource)).toBe(false);
  });
});

describe("the operator", () => {
  test("does all of its work with the rights that it has", async () => {
    const kubeconfig = await withToken("egress-nat-operator", "operator");
    const stop = new AbortController();
    const own = createTransport({ credentials: await loadCredentials({ kubeconfig }), logger });
    const operator = new EgressOperator({
      transport: own,
      settings: { image: "egress-pod:1", imagePullPolicy: "Never", clusterRanges: [], logLevel: "info" },
      namespace: NAMESPACE,
      identity: "operator-0",
      logger,
      metrics: new OperatorMetrics(new Registry()),
    });
    const running = operator.run(stop.signal);
    try {
      const spec = { destinations: ["::/0"], podDisruptionBudget: { minAvailable: 1 } };
      const metadata = { name: "nat", namespace: NAMESPACE };
      await run(["create", "-f", "-"], {
        input: JSON.stringify({ apiVersion, kind: "Egress", metadata, spec }),
      });
      await run(["create", "-f", "-"], { input: slice("orphan", "no-such-node") });
      await seen("Degraded", "get", "egress", "nat", "-o=jsonpath={.status.conditions[*].type}");
      await seen("poddisruptionbudget.policy/nat", "get", "pdb", "-o", "name");
      await seen("created Service", "events");
      await seen("No resources found", "get", "egressclientslices");

      const patch = JSON.stringify({ spec: { podDisruptionBudget: null } });
      await run(["patch", "egress", "nat", "-n", NAMESPACE, "--type=merge", "-p", patch]);
      await seen("No resources found", "get", "pdb");
    } finally {
      stop.abort();
      await running;
      own.close();
    }
  });

  async function seen(text: string, ...args: readonly string[]): Promise<void> {
    const look = async () => (await run([...args, "-n", NAMESPACE])).all;
    await expect.poll(look, { timeout: 30_000, interval: 100 }).toContain(text);
  }
});

describe("a node agent", () => {
  /** A kubeconfig with a token of the agent as kubelet asks for one: it names the node. */
  async function agentOn(node: string): Promise<string> {
    await run(["create", "-f", "-"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: node } }),
    });
    return withToken("egress-nat-node-agent", node, [
      "--bound-object-kind=Node",
      `--bound-object-name=${node}`,
    ]);
  }

  test("writes the slices of its own node, and of no other", async () => {
    const kubeconfig = await agentOn("chart-node-1");
    const own = await run(["create", "-f", "-"], { input: slice("own", "chart-node-1"), kubeconfig });
    expect(own.exitCode, own.all).toBe(0);
    expect(
      (await run(["delete", "egressclientslice", "own", "-n", NAMESPACE], { kubeconfig })).exitCode,
    ).toBe(0);

    const other = await run(["create", "-f", "-"], { input: slice("other", "chart-node-2"), kubeconfig });
    expect(other.all).toContain(
      "the node agent of chart-node-1 may not write the EgressClientSlice of chart-node-2",
    );
  });

  test("changes and deletes no slice of another node", async () => {
    const kubeconfig = await agentOn("chart-node-3");
    await run(["create", "-f", "-"], { input: slice("foreign", "chart-node-4") });
    const label = await run(["label", "egressclientslice", "foreign", "a=b", "-n", NAMESPACE], {
      kubeconfig,
    });
    expect(label.all).toContain("may not write the EgressClientSlice of chart-node-4");
    const removal = await run(["delete", "egressclientslice", "foreign", "-n", NAMESPACE], { kubeconfig });
    expect(removal.all).toContain("may not write the EgressClientSlice of chart-node-4");
    // People and the operator are not agents.
    expect((await run(["delete", "egressclientslice", "foreign", "-n", NAMESPACE])).exitCode).toBe(0);
  });

  test("writes nothing with a token that names no node", async () => {
    const kubeconfig = await withToken("egress-nat-node-agent", "nowhere");
    const { all } = await run(["create", "-f", "-"], { input: slice("nowhere", "chart-node-1"), kubeconfig });
    expect(all).toContain("token does not name its node");
  });
});
