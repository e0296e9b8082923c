import { execa } from "execa";
import { expect, test } from "vitest";
import { waitUntil } from "../system/wait-until.ts";
import { RELEASE } from "../workload/chart.ts";
import { clientOf, egress, probePod } from "../workload/manifests.ts";
import { ProbePod } from "../workload/probe-pod.ts";
import { CAST } from "./kit/cast.ts";
import { INTERNET_EGRESS, NAMESPACE, OFFICE_EGRESS } from "./kit/names.ts";
import { killPods, nodeAgentsReady } from "./kit/product.ts";
import { describeOwnRelease, kubectl, nodeOf, player, world } from "./kit/world.ts";

// This file runs last (order.ts): it takes away what the others need.
describeOwnRelease("the Helm release", () => {
  test("keeps the plugin on the nodes when agents restart or are upgraded", async () => {
    const before = await pluginOnNodes();
    expect(before).toEqual([INSTALLED, INSTALLED]);
    await killPods("node-agent");
    await nodeAgentsReady();
    expect(await pluginOnNodes()).toEqual(before);
    await kubectl.run(["rollout", "restart", "daemonset/egress-nat-node-agent", "-n", RELEASE.namespace]);
    const watch = [
      "rollout",
      "status",
      "daemonset/egress-nat-node-agent",
      "-n",
      RELEASE.namespace,
      "--timeout=0s",
    ];
    while (!(await kubectl.run(watch).catch(() => "")).includes("successfully")) {
      expect(await pluginOnNodes()).toEqual(before);
    }
  });

  test("puts the plugin back when another program rewrites the conflist", async () => {
    const node = await nodeOf(await player("alice"));
    await node.run(`
      file=$(ls /host/etc/cni/net.d/*.conflist | head -1)
      python3 - "$file" <<'PYTHON'
import json, sys
conflist = json.load(open(sys.argv[1]))
conflist["plugins"] = [plugin for plugin in conflist["plugins"] if plugin["type"] != "egress-nat"]
json.dump(conflist, open(sys.argv[1], "w"))
PYTHON`);
    await waitUntil(async () => (await pluginOnNodes())[0] === INSTALLED, {
      what: "the agent to put the plugin back into the conflist",
      timeoutMs: 15_000,
    });
  });

  test("refuses to be uninstalled while there are Egresses, and says how to list them", async () => {
    const refusal = await helm("uninstall", RELEASE.name, "-n", RELEASE.namespace, "--timeout=3m");
    expect(refusal.exitCode).not.toBe(0);
    const pods = ["-n", RELEASE.namespace, "-l", "job-name=egress-nat-uninstall-check"];
    const said = `${refusal.all}${await kubectl.run(["logs", ...pods]).catch(() => "")}`;
    expect(said).toMatch(/kubectl get (egress\w*|eg) (-A|--all-namespaces)/);
    await nodeAgentsReady();
  });

  test("leaves nothing but the CRDs when it is uninstalled without Egresses", {
    timeout: 600_000,
  }, async () => {
    await kubectl.delete([INTERNET_EGRESS, OFFICE_EGRESS].map((name) => egress(name, {})));
    const { exitCode, all } = await helm("uninstall", RELEASE.name, "-n", RELEASE.namespace, "--timeout=5m");
    expect(exitCode, all).toBe(0);
    expect(await pluginOnNodes()).toEqual([REMOVED, REMOVED]);
    // The hooks' own pods are on their way out when helm returns.
    await expect
      .poll(leftOver, { timeout: 60_000, interval: 1000 })
      .toEqual([
        "customresourcedefinition.apiextensions.k8s.io/egressclientslices.coil.cybozu.com",
        "customresourcedefinition.apiextensions.k8s.io/egresses.coil.cybozu.com",
      ]);
  });

  test("has no hand in pods that start after it is gone", async () => {
    const pod = probePod({
      name: "latecomer",
      namespace: NAMESPACE,
      image: world.image,
      annotations: clientOf(INTERNET_EGRESS),
    });
    await kubectl.apply(pod);
    try {
      const latecomer = await ProbePod.ready(kubectl, NAMESPACE, "latecomer");
      expect(await latecomer.run("ip", "-brief", "link")).not.toMatch(/fou/);
      expect(await latecomer.run("ip", "rule")).not.toMatch(/11[78]/);
      if (world.internet !== undefined) {
        expect(await latecomer.seenBy([world.internet.wide.ipv4])).toEqual([
          { tcp: latecomer.ipv4, udp: latecomer.ipv4 },
        ]);
      }
    } finally {
      await kubectl.delete([pod], { wait: false });
    }
  });
});

const INSTALLED = "last in the conflist, executable";
const REMOVED = "not in the conflist, no executable";

/** What each node's CNI folders hold of the product. */
async function pluginOnNodes(): Promise<string[]> {
  const players = await Promise.all([player(CAST.alice), player(CAST.bob)]);
  const nodes = await Promise.all(players.map(nodeOf));
  return Promise.all(
    nodes.map(async (node) =>
      (
        await node.run(`
          python3 - /host/etc/cni/net.d/*.conflist <<'PYTHON'
import json, os, sys
types = [plugin["type"] for plugin in json.load(open(sys.argv[1]))["plugins"]]
conflist = "last in" if types[-1] == "egress-nat" else "in" if "egress-nat" in types else "not in"
executable = "executable" if os.access("/host/opt/cni/bin/egress-nat", os.X_OK) else "no executable"
print(f"{conflist} the conflist, {executable}")
PYTHON`)
      ).trim(),
    ),
  );
}

/** The names of all objects in the cluster that carry the release's label, and of the CRDs. */
async function leftOver(): Promise<string[]> {
  const resources = await kubectl.run(["api-resources", "--verbs=list", "-o", "name"]);
  const kinds = resources.split("\n").filter((kind) => kind !== "" && !kind.startsWith("events"));
  const list = ["get", kinds.join(), "--all-namespaces", "--ignore-not-found", "-o", "name"];
  const labelled = await kubectl.run([...list, "-l", `app.kubernetes.io/instance=${RELEASE.name}`]);
  const definitions = await kubectl.run(["get", "customresourcedefinitions", "-o", "name"]);
  const own = definitions.split("\n").filter((name) => name.endsWith(".coil.cybozu.com"));
  return [...labelled.split("\n").filter((name) => name !== ""), ...own].toSorted();
}

async function helm(...args: readonly string[]) {
  const [file = "", ...prefix] = world.helm;
  return execa(file, [...prefix, ...args], { all: true, reject: false, stdin: "ignore" });
}
