import { EGRESS_RESOURCE } from "@egress-nat/crds";
import { LEASE_RESOURCE, pause } from "@egress-nat/kube";
import { withoutInDefinition } from "@egress-nat/test/bed/api/earlier-release";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { Playground, silentLogger } from "../testing/cluster.ts";
import { confinedTo } from "../testing/confined-transport.ts";
import { RunningOperator } from "../testing/running-operator.ts";
import { DAEMON_SET } from "./daemon-set.ts";
import { definitionProblems } from "./definitions.ts";
import { installationFindings } from "./installation-check.ts";
import { refuseWhileEgressesExist } from "./uninstall-check.ts";
import { waitForDaemonSet } from "./uninstall-wait.ts";

const signal = AbortSignal.timeout(240_000);

let play: Playground;

beforeAll(async () => {
  play = await Playground.create(inject("kubeconfig"));
});

afterAll(() => play.transport.close());

async function createDaemonSet(name: string): Promise<void> {
  const labels = { app: name };
  await play.create(DAEMON_SET, {
    metadata: { name },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "agent", image: "agent:1" }] } },
    },
  });
}

function reportDaemonSet(name: string, numberReady: number): Promise<unknown> {
  const counts = {
    desiredNumberScheduled: 3,
    updatedNumberScheduled: 3,
    currentNumberScheduled: 3,
    numberMisscheduled: 0,
  };
  return play.patch(
    DAEMON_SET,
    name,
    { status: { observedGeneration: 1, ...counts, numberReady } },
    "status",
  );
}

describe("uninstalling", () => {
  test("is refused while there is an Egress", async () => {
    await play.createEgress("nat");
    await expect(refuseWhileEgressesExist(play.transport, signal)).rejects.toThrow(/kubectl get egresses -A/);
    await play.deleteEgress("nat");
  });

  test("waits until every node is clean", async () => {
    await createDaemonSet("uninstall");
    await reportDaemonSet("uninstall", 2);
    let isDone = false;
    const waiting = waitForDaemonSet(
      play.transport,
      { namespace: play.namespace, name: "uninstall" },
      silentLogger,
      signal,
    ).then(() => {
      isDone = true;
    });
    await pause(700, signal);
    expect(isDone).toBe(false);
    await reportDaemonSet("uninstall", 3);
    await waiting;
  });
});

describe("the installation check", () => {
  const findings = async () => {
    const all = await installationFindings(play.transport, play.namespace, signal);
    return all.map(({ ok, message }) => `${ok ? "ok" : "not ok"}: ${message}`);
  };

  test("says what is missing", async () => {
    expect(await findings()).toEqual([
      "ok: the API server serves egresses",
      "ok: the API server serves egressclientslices",
      expect.stringMatching(/^not ok: .*leases.* not found/),
      expect.stringMatching(/^not ok: .*daemonsets.* not found/),
    ]);
  });

  test("names a definition that is not of this release, and the operator is not ready with it", async () => {
    const problem = async () =>
      (await definitionProblems(play.transport, signal))[EGRESS_RESOURCE.plural] ?? "";
    using elsewhere = await Playground.create(inject("kubeconfig"));
    const { namespace, transport } = elsewhere;
    const start = () => RunningOperator.start(confinedTo(namespace, transport), namespace);
    const outdated =
      /CustomResourceDefinition egresses\.coil\.cybozu\.com is not of this release, .* it lacks status\.conditions, so .*kubectl apply --server-side/;
    await withoutInDefinition(
      play.transport,
      "status/properties/conditions",
      async () => (await problem()) !== "",
      async () => {
        expect((await findings())[0]).toMatch(outdated);
        expect((await findings())[1]).toBe("ok: the API server serves egressclientslices");
        await using operator = start();
        await expect.poll(() => operator.reasonsNotReady.join(), { timeout: 20_000 }).toMatch(outdated);
        expect(operator.isReady).toBe(false);
      },
    );
    await using operator = start();
    await expect.poll(() => operator.isReady, { timeout: 20_000 }).toBe(true);
  });

  test("is content when an operator leads and agents serve every node", async () => {
    await play.create(LEASE_RESOURCE, {
      metadata: { name: "egress-nat-operator" },
      spec: { holderIdentity: "operator-0" },
    });
    await createDaemonSet("egress-nat-node-agent");
    await reportDaemonSet("egress-nat-node-agent", 2);
    expect((await findings()).slice(2)).toEqual([
      "ok: the operator operator-0 leads",
      expect.stringContaining("not ok: agents serve 2 of 3 nodes: kubectl -n"),
    ]);
    await reportDaemonSet("egress-nat-node-agent", 3);
    expect((await findings()).slice(3)).toEqual(["ok: agents serve 3 of 3 nodes"]);
  });
});
