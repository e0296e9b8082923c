import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { helmBinary, kubectlBinary } from "@egress-nat/tools/system/client-tools";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { startControllers } from "../bed/api/controllers.ts";
import { fencesIn, ROOT } from "./markdown.ts";

const QUICK_START = "docs/quick-start.md";
const OUTSIDE = "192.0.2.7";
const OF_THE_CLUSTER =
  "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings";
const NAMESPACES = ["egress-nat", "internet-egress", "internet"];

let controllers: AsyncDisposable;

beforeAll(async () => {
  // They make the ServiceAccounts of pods, and end namespaces.
  controllers = await startControllers(["namespace-controller", "serviceaccount-controller"]);
  await removeAll();
});

afterAll(async () => {
  await removeAll();
  await controllers[Symbol.asyncDispose]();
});

/** Runs what a document has its reader type, in the folder and with the programs that the reader has. */
async function type(commands: string): Promise<string> {
  const folders = [await kubectlBinary(), await helmBinary()].map((program) => dirname(program));
  const { exitCode, all, stdout } = await execa("bash", ["-euc", commands], {
    cwd: ROOT,
    env: {
      PATH: [...folders, process.env.PATH].join(":"),
      KUBECONFIG: inject("kubeconfig"),
      ...{ OUTSIDE, CLIENT_NODE: "node-a", GATEWAY_NODE: "node-b" },
    },
    reject: false,
    all: true,
  });
  expect(exitCode, `${commands}\n${all}`).toBe(0);
  expect(all).not.toContain("Warning:");
  return stdout;
}

/** Also what other files have left of the product. */
async function removeAll(): Promise<void> {
  await type(`kubectl delete ${OF_THE_CLUSTER} -l app.kubernetes.io/part-of=egress-nat
    kubectl delete pods --ignore-not-found client bystander
    kubectl delete namespaces --ignore-not-found ${NAMESPACES.join(" ")}`);
}

/** The blocks of the quick start below a heading. */
function blocks(heading: string): string[] {
  return fencesIn(QUICK_START)
    .filter((fence) => fence.language === "sh" && fence.heading === heading)
    .map(({ code }) => code);
}

/** Nobody runs pods here. */
function withoutWaiting(commands: string): string {
  return commands.replace(" --wait", "");
}

const installation = (heading: string): string => {
  const [block = "", ...others] = blocks(heading).filter((code) => code.startsWith("helm install"));
  expect(others).toEqual([]);
  return withoutWaiting(block);
};

describe("the quick start", () => {
  let manifest: string;

  test("installs the chart, on k3s", async () => {
    const command = installation("k3s");
    manifest = await type(command.replace("helm install", "helm install --dry-run=server"));
    expect(manifest).toContain(`path: "/var/lib/rancher/k3s/agent/etc/cni/net.d"`);
    expect(manifest).toContain('value: "10.43.0.0/16"');
  });

  test("builds the images that the chart asks for, from folders with a Dockerfile", () => {
    const [block = ""] = blocks("Images");
    const builds = [...block.matchAll(/^docker build --tag (\S+) (\S+)$/gm)];
    expect(builds).toHaveLength(3);
    for (const [, image, folder = ""] of builds) {
      expect(manifest).toMatch(new RegExp(`(image|value): "?${image}"?$`, "m"));
      expect(existsSync(join(ROOT, folder, "Dockerfile"))).toBe(true);
    }
  });

  test("installs the chart, on kind", async () => {
    expect(await type(installation("kind"))).toContain("STATUS: deployed");
  });

  test("makes an Egress, a client and a bystander, and deletes the Egress", async () => {
    const [make = "", , remove = ""] = blocks("The proof");
    await type(make.slice(0, make.indexOf("kubectl wait")));
    const read = (what: string) => type(`kubectl get ${what} -o json`).then((json) => JSON.parse(json));
    expect((await read("egress/nat --namespace internet-egress")).spec).toMatchObject({
      destinations: [`${OUTSIDE}/32`],
      template: { spec: { nodeSelector: { "kubernetes.io/hostname": "node-b" } } },
    });
    expect(await read("pod/client")).toMatchObject({
      metadata: { annotations: { "egress.coil.cybozu.com/internet-egress": "nat" } },
      spec: { nodeSelector: { "kubernetes.io/hostname": "node-a" } },
    });
    expect(await read("pod/bystander")).toMatchObject({
      spec: { nodeSelector: { "kubernetes.io/hostname": "node-a" } },
    });
    await type(remove.slice(0, remove.indexOf("kubectl exec")));
    expect(await type("kubectl get egresses --namespace internet-egress -o name")).toBe("");
  });
});

describe("what the reader is shown is accepted by the API server, in", () => {
  beforeAll(removeAll);

  /** What others define is not there. */
  const isKnown = ({ code }: { readonly code: string }) =>
    !code.includes("apiVersion: monitoring.coreos.com");

  test.each(["README.md", "docs/user-guide.md"])("%s", async (document) => {
    const shown = fencesIn(document).filter(
      ({ language, code }) =>
        (language === "yaml" && /^apiVersion:/m.test(code)) || code.startsWith("kubectl create namespace"),
    );
    expect(shown.length).toBeGreaterThan(0);
    for (const { language, code } of shown.filter(isKnown))
      await type(language === "sh" ? code : `kubectl apply -f - <<'EOF'\n${code}EOF\n`);
    expect(await type("kubectl get egresses --namespace internet-egress -o name")).not.toBe("");
    await removeAll();
  });

  test("the chart's notes", async () => {
    const notes = readFileSync(join(ROOT, "config/helm/egress-nat/templates/NOTES.txt"), "utf8");
    const [block = ""] = /^ {4}kubectl create namespace[\s\S]*?(?=\n\n\S)/m.exec(notes) ?? [];
    expect(await type(block.replaceAll(/^ {4}/gm, ""))).toContain("0.0.0.0/0");
  });
});
