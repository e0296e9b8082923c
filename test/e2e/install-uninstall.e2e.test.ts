import { CHART } from "@egress-nat/tools/chart";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import { expect, test } from "vitest";
import { RELEASE } from "../bed/workload/chart.ts";
import { egress, probePod } from "../bed/workload/manifests.ts";
import { ProbePod } from "../bed/workload/probe-pod.ts";
import { INTERNET_EGRESS, NAMESPACE, OFFICE_EGRESS } from "./kit/names.ts";
import { filesOnNodes, INSTALLED, pluginOnNodes, REMOVED } from "./kit/plugin.ts";
import { nodeAgentsReady } from "./kit/product.ts";
import { client, describeOwnRelease, kubectl, nodeOf, player, world } from "./kit/world.ts";

// This file runs last (order.ts): it takes away what the others need.
describeOwnRelease("the Helm release", () => {
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

  test("passes its own test", async () => {
    const { exitCode, all } = await helm("test", RELEASE.name, "-n", RELEASE.namespace, "--timeout=3m");
    expect(exitCode, all).toBe(0);
    expect(all).toMatch(/2 of 2 nodes/);
  });

  test("refuses to be uninstalled while there are Egresses, and says how to list them", async () => {
    const refusal = await helm("uninstall", RELEASE.name, "-n", RELEASE.namespace, "--timeout=3m");
    expect(refusal.exitCode).not.toBe(0);
    expect(refusal.all).toMatch(/kubectl get (egress\w*|eg) (-A|--all-namespaces)/);
    await nodeAgentsReady();
  });

  test("is one that Helm upgrades again after the rollback that the refusal names", async () => {
    const release = ["-n", RELEASE.namespace, RELEASE.name];
    const upgrade = () => helm("upgrade", ...release, CHART, "--reuse-values");
    expect((await upgrade()).exitCode).not.toBe(0);
    const { stdout } = await helm("history", ...release, "-o=json");
    expect(await helm("rollback", ...release, `${JSON.parse(stdout).at(-1).revision}`)).toMatchObject({
      exitCode: 0,
    });
    const { exitCode, all } = await upgrade();
    expect(exitCode, all).toBe(0);
    await nodeAgentsReady();
  });

  test("leaves nothing but the CRDs when it is uninstalled without Egresses", {
    timeout: 600_000,
  }, async () => {
    await kubectl.delete([INTERNET_EGRESS, OFFICE_EGRESS].map((name) => egress(name, {})));
    const { exitCode, all } = await helm("uninstall", RELEASE.name, "-n", RELEASE.namespace, "--timeout=5m");
    expect(exitCode, all).toBe(0);
    expect(await pluginOnNodes()).toEqual([REMOVED, REMOVED]);
    expect(await filesOnNodes()).toEqual([]);
    // The hooks' own pods are on their way out when helm returns.
    await expect
      .poll(leftOver, { timeout: 60_000, interval: 1000 })
      .toEqual([
        "customresourcedefinition.apiextensions.k8s.io/egressclientslices.coil.cybozu.com",
        "customresourcedefinition.apiextensions.k8s.io/egresses.coil.cybozu.com",
      ]);
  });

  test("has no hand in pods that start after it is gone", async () => {
    const pod = probePod(client("latecomer", INTERNET_EGRESS));
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
