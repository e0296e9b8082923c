import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { API_GROUP, API_VERSION, EGRESS_LABEL, labelValue, NODE_LABEL, sliceName } from "@egress-nat/crds";
import { kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { execa } from "execa";
import { inject } from "vitest";
import { stringify } from "yaml";
import { render } from "./render.ts";

export const apiVersion = `${API_GROUP}/${API_VERSION}`;

const CLUSTER_KINDS =
  "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings";

/** The chart's objects in the apiserver of the API tests. No kubelet runs its pods: tests act with its accounts. */
export class InstalledChart {
  readonly namespace: string;
  readonly #kubectl: string;
  readonly #folder: string;

  private constructor(namespace: string, kubectl: string, folder: string) {
    this.namespace = namespace;
    this.#kubectl = kubectl;
    this.#folder = folder;
  }

  /** Installs it in a namespace that is made for it. */
  static async in(namespace: string, values: object = {}): Promise<InstalledChart> {
    const folder = await mkdtemp(join(tmpdir(), "egress-nat-chart-"));
    const chart = new InstalledChart(namespace, await kubectlBinary(), folder);
    await chart.run(["create", "namespace", namespace]);
    await chart.apply(values);
    return chart;
  }

  /** Of unknown fields and of what the API server warns of, nothing passes. */
  async apply(values: object): Promise<void> {
    const objects = (await render(values, this.namespace)).map((object) => stringify(object)).join("---\n");
    const strict = ["--validate=strict", "--warnings-as-errors"];
    const { all, exitCode } = await this.run(["apply", ...strict, "-f", "-"], { input: objects });
    if (exitCode !== 0) throw new Error(`cannot apply the chart: ${all}`);
  }

  async uninstall(): Promise<void> {
    await this.run(["delete", CLUSTER_KINDS, "-l", "app.kubernetes.io/part-of=egress-nat"]);
    await this.run([
      "delete",
      "deployments,daemonsets,jobs,pods",
      "--all",
      "-n",
      this.namespace,
      "--wait=false",
    ]);
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** Runs kubectl, as an administrator where no other kubeconfig is named. */
  run(args: readonly string[], options: { input?: string; kubeconfig?: string } = {}) {
    const { input, kubeconfig = inject("kubeconfig") } = options;
    return execa(this.#kubectl, [`--kubeconfig=${kubeconfig}`, ...args], {
      reject: false,
      all: true,
      ...(input !== undefined && { input }),
    });
  }

  /** Makes objects as an administrator. */
  async create(...objects: readonly object[]): Promise<void> {
    const input = objects.map((object) => JSON.stringify(object)).join("\n---\n");
    const { all, exitCode } = await this.run(["create", "-f", "-"], { input });
    if (exitCode !== 0) throw new Error(`cannot create what the test needs: ${all}`);
  }

  /** A kubeconfig with a token of that account. */
  async withToken(account: string, name: string, options: readonly string[] = []): Promise<string> {
    const { stdout: token } = await this.run(["create", "token", account, "-n", this.namespace, ...options]);
    const kubeconfig = join(this.#folder, name);
    const { stdout } = await this.run(["config", "view", "--raw", "--flatten", "-o", "json"]);
    const config = JSON.parse(stdout);
    config.users[0].user = { token };
    await writeFile(kubeconfig, JSON.stringify(config));
    return kubeconfig;
  }

  /** A kubeconfig with a token of the agent as kubelet asks for one: it names the node, which is made for it. */
  async agentOn(node: string, spec: object = {}): Promise<string> {
    await this.run(["create", "-f", "-"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: node }, spec }),
    });
    const bound = ["--bound-object-kind=Node", `--bound-object-name=${node}`];
    return this.withToken("egress-nat-node-agent", node, bound);
  }

  /** A slice as the agent of that node writes it, with what a test cares about in place of that. */
  slice(egress: string, nodeName: string, fields: object = {}, namespace = this.namespace): string {
    const labels = { [EGRESS_LABEL]: labelValue(egress), [NODE_LABEL]: labelValue(nodeName) };
    const metadata = { name: sliceName(egress, nodeName), namespace, labels, ...fields };
    return JSON.stringify({ apiVersion, kind: "EgressClientSlice", metadata, nodeName, clients: [] });
  }
}
