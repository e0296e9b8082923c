import { EGRESS_LABEL, labelValue } from "@egress-nat/crds";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { afterAll, beforeAll, expect, test } from "vitest";
import { probePod } from "../bed/workload/manifests.ts";
import { ProbePod, WHOAMI_PORT } from "../bed/workload/probe-pod.ts";
import { egressIn } from "./kit/egress.ts";
import { uniqueText } from "./kit/evidence.ts";
import { addressesOf } from "./kit/internet.ts";
import { INTERNET_EGRESS, NAMESPACE } from "./kit/names.ts";
import { tracesOf } from "./kit/traces.ts";
import { client, describeOnline, gatewaysOf, gatewaysReady, kubectl, nodeOf, world } from "./kit/world.ts";

const WITHDRAWAL_MS = 5_000;

const pod = probePod(client("leaver", INTERNET_EGRESS));

describeOnline("a client that is deleted", (internet) => {
  test("is forgotten by its slice and its gateways, with its connections, within 5 seconds", async () => {
    await kubectl.apply(pod);
    const leaver = await ProbePod.ready(kubectl, NAMESPACE, pod.metadata.name);
    await leaver.seenBy([internet.wide.ipv4, internet.wide.ipv6]);
    const gateways = await gatewaysOf(INTERNET_EGRESS);
    const traces = await tracesOf(INTERNET_EGRESS, leaver);
    for (const address of [leaver.ipv4, leaver.ipv6]) {
      const elements = gateways.map(({ name }) => `element of ${name}: ${address}`);
      expect(traces).toEqual(expect.arrayContaining([`slice: ${address}`, ...elements]));
      expect(traces).toContainEqual(expect.stringMatching(`^flow of .*: ${address}$`));
    }

    const node = await nodeOf(leaver);
    await kubectl.delete([pod], { wait: false });
    // Its network namespace goes right after CNI DEL.
    await waitUntil(async () => !(await node.hasPod(leaver.ipv4)), {
      what: "the network namespace of pod leaver to be gone",
      timeoutMs: 60_000,
      intervalMs: 200,
    });
    await waitUntil(async () => (await tracesOf(INTERNET_EGRESS, leaver)).length === 0, {
      what: `slices and gateways to forget ${leaver.ipv4} and ${leaver.ipv6}`,
      timeoutMs: WITHDRAWAL_MS,
      explain: async () => (await tracesOf(INTERNET_EGRESS, leaver)).join("\n"),
    });
  });
});

describeOnline("an Egress that is deleted", (internet) => {
  const DOOMED = { namespace: INTERNET_EGRESS.namespace, name: "doomed" };
  const KINDS =
    "deployments,services,poddisruptionbudgets,roles,rolebindings,serviceaccounts,egressclientslices";
  const object = egressIn(world, DOOMED, {
    destinations: ["0.0.0.0/0", "::/0"],
    replicas: 1,
    podDisruptionBudget: { maxUnavailable: 1 },
  });
  const orphan = probePod(client("orphan", DOOMED));

  let gatewayAddresses: readonly string[];

  beforeAll(async () => {
    await kubectl.apply(object);
    await gatewaysReady(DOOMED);
    gatewayAddresses = addressesOf(...(await gatewaysOf(DOOMED)));
    await kubectl.apply(orphan);
  });
  afterAll(() => kubectl.delete([object, orphan], { wait: false }));

  test("takes everything with it that was made for it", async () => {
    await ProbePod.ready(kubectl, NAMESPACE, "orphan");
    expect(await kinds()).toEqual([
      "Deployment",
      "EgressClientSlice",
      "PodDisruptionBudget",
      "Role",
      "RoleBinding",
      "Service",
      "ServiceAccount",
    ]);
    await kubectl.delete([object]);
    await waitUntil(async () => (await kinds()).length === 0, {
      what: "the objects of Egress doomed to be gone",
      timeoutMs: 60_000,
      intervalMs: 500,
      explain: async () => (await kinds()).join(),
    });
  });

  test("leaves its clients closed: nothing reaches the internet by another way", async () => {
    const client = await ProbePod.ready(kubectl, NAMESPACE, "orphan");
    const text = uniqueText("orphan");
    const { wide } = internet;
    const answered = async () => {
      const answers = await client.seenBy([wide.ipv4, wide.ipv6], text);
      return answers.flatMap(({ tcp, udp }) => [tcp, udp]).filter((answer) => /[.:]/.test(answer));
    };
    await waitUntil(async () => (await answered()).length === 0, {
      what: "pod orphan to have no way out",
      timeoutMs: 30_000,
      intervalMs: 500,
    });
    // Until then by its gateway, which ends with its Egress, and never with its own address.
    expect(gatewayAddresses).toEqual(expect.arrayContaining(await internet.sendersOf(text)));
    const bound = await client.ask(
      [wide.ipv4, wide.ipv6].map((address) => {
        return { do: "udp" as const, address, port: WHOAMI_PORT, text, device: "eth0" };
      }),
    );
    expect(bound).toEqual(Array(2).fill({ error: expect.any(String) }));
  });

  async function kinds(): Promise<string[]> {
    const list = ["get", KINDS, "-n", DOOMED.namespace, "-l", `${EGRESS_LABEL}=${labelValue(DOOMED.name)}`];
    const names = await kubectl.run([...list, "-o", "jsonpath={range .items[*]}{.kind}{'\\n'}{end}"]);
    return [...new Set(names.split("\n").filter((kind) => kind !== ""))].toSorted();
  }
});
