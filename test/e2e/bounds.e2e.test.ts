import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, expect, test } from "vitest";
import type { Manifest } from "../bed/workload/kubectl.ts";
import { scriptPod } from "../bed/workload/manifests.ts";
import type { SeenAs } from "../bed/workload/probe-pod.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { tracesOf } from "./kit/traces.ts";
import { client, describeOnline, gatewaysOf, kubectl, player, podEvent } from "./kit/world.ts";

/** Whether it comes to be is asked here, on any machine; how soon is what `npm run bench -- revocation` measures. */
const PATIENCE_MS = 60_000;

/** What is sent while client and gateway change, one before the other, may find no answer. */
const PROBE_SECONDS = 3;

const LABEL = "egress-nat-e2e/allowed";

describeOnline("the bounds of an Egress hold for clients that run", (internet) => {
  const { wide, lowMtu } = internet;
  const outsider = scriptPod(client("outsider", INTERNET_EGRESS), "sleep infinity");

  /** One whose pods have the addresses of the internet's servers. */
  const node: Manifest = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: "e2e-nobodys-node" },
    spec: { podCIDRs: [`${wide.ipv4}/32`, `${wide.ipv6}/128`], unschedulable: true },
  };

  afterAll(async () => {
    await change({ excludedDestinations: null, allowedNamespaces: null });
    await kubectl.run(["label", "namespace", NAMESPACE, `${LABEL}-`]);
    await kubectl.delete([outsider, node], { wait: false });
    await seen(await byGateway());
  });

  test("what is excluded is reached with the client's own address, and the rest as before", async () => {
    const alice = await player("alice");
    await seen(await byGateway());
    await change({ excludedDestinations: [`${wide.ipv4}/32`, `${wide.ipv6}/128`] });
    await seen((address) => address === alice.ipv4 || address === alice.ipv6);
    const [other] = await alice.seenBy([lowMtu.ipv4]);
    expect((await gatewaysOf(INTERNET_EGRESS)).map(({ ipv4 }) => ipv4)).toContain(other?.tcp);

    await change({ excludedDestinations: null });
    await seen(await byGateway());
  });

  test("what has become the cluster's is reached with the client's own address, until it no longer is", async () => {
    const alice = await player("alice");
    await kubectl.apply(node);
    await seen((address) => address === alice.ipv4 || address === alice.ipv6);
    await kubectl.delete([node]);
    await seen(await byGateway());
  });

  test("a namespace that is allowed no longer has no way out, and one that is allowed again has", async () => {
    await kubectl.run(["label", "namespace", NAMESPACE, `${LABEL}=yes`]);
    await change({ allowedNamespaces: { matchLabels: { [LABEL]: "yes" } } });
    await waitUntil(async () => (await allowed()) === `["${NAMESPACE}"]`, {
      what: `${NAMESPACE} to be allowed`,
      timeoutMs: PATIENCE_MS,
      intervalMs: 100,
    });
    await seen(await byGateway());

    await kubectl.run(["label", "namespace", NAMESPACE, `${LABEL}-`]);
    await seen((answer) => !/[.:]/.test(answer));
    const alice = await player("alice");
    const admitted = async () =>
      (await tracesOf(INTERNET_EGRESS, alice)).filter((trace) => !trace.startsWith("slice"));
    await expect.poll(admitted, { timeout: PATIENCE_MS }).toEqual([]);
    const refusal = new RegExp(`pods of namespace ${NAMESPACE} may not use .*${INTERNET_EGRESS.name}`);
    await podEvent({ metadata: { name: "alice", namespace: NAMESPACE } }, refusal);
    await kubectl.apply(outsider);
    await podEvent(outsider, refusal);

    await kubectl.run(["label", "namespace", NAMESPACE, `${LABEL}=yes`]);
    await seen(await byGateway());
  });

  async function change(spec: object): Promise<void> {
    const { namespace, name } = INTERNET_EGRESS;
    const patch = JSON.stringify({ spec });
    await kubectl.run(["patch", "egress", name, "-n", namespace, "--type=merge", "-p", patch]);
  }

  function allowed(): Promise<string> {
    const { namespace, name } = INTERNET_EGRESS;
    return kubectl.run([
      "get",
      "egress",
      name,
      "-n",
      namespace,
      "-o",
      "jsonpath={.status.allowedNamespaces}",
    ]);
  }

  /** How the internet sees alice when she comes by a gateway. */
  async function byGateway(): Promise<(answer: string) => boolean> {
    const gateways = await gatewaysOf(INTERNET_EGRESS);
    const addresses = new Set(gateways.flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]));
    return (answer) => addresses.has(answer);
  }

  /** Waits until the internet's answers to alice, or the errors in their place, are all as they should be. */
  async function seen(asExpected: (answer: string) => boolean): Promise<void> {
    const alice = await player("alice");
    let last: readonly SeenAs[] = [];
    await waitUntil(
      async () => {
        last = await alice.seenBy([wide.ipv4, wide.ipv6], undefined, PROBE_SECONDS);
        return last.flatMap(({ tcp, udp }) => [tcp, udp]).every(asExpected);
      },
      {
        what: "alice to be seen otherwise",
        timeoutMs: PATIENCE_MS,
        intervalMs: 100,
        explain: async () => JSON.stringify(last),
      },
    );
  }
});
