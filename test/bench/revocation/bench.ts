import { TOOLBOX_IMAGE } from "@egress-nat/tools/images";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { z } from "zod";
import type { Cluster } from "../../bed/cluster/cluster.ts";
import { gatewaysReady } from "../../bed/workload/gateways.ts";
import type { Kubectl } from "../../bed/workload/kubectl.ts";
import {
  clientOf,
  type EgressName,
  egress,
  namespace,
  probePod,
  probeProgram,
} from "../../bed/workload/manifests.ts";
import { ProbePod, WHOAMI_PORT } from "../../bed/workload/probe-pod.ts";
import { withCluster } from "../cluster.ts";
import { progress } from "../progress.ts";
import { medianOf, milliseconds, type Report } from "../report.ts";

const EGRESS: EgressName = { namespace: "bench", name: "bench" };
const CLIENTS = "clients";
const LABEL = "bench/allowed";

const LIMIT = { atMost: 2_000 };

/** Nothing is sent for so long once nothing is answered: much longer than any change takes. */
const SILENCE_MS = 5_000;
const ANSWER_SECONDS = 0.3;
const PATIENCE_MS = 60_000;

/**
 * How long a client is served after kubectl has taken the label from its namespace that the Egress's
 * `allowedNamespaces` asks for, and when it is served again after it has been put back.
 */
export function benchRevocation(rounds: number): Promise<Report> {
  return withCluster((cluster, kubectl) => measure(cluster, kubectl, rounds));
}

async function measure(cluster: Cluster, kubectl: Kubectl, rounds: number): Promise<Report> {
  const client = await setTheScene(kubectl);
  const { ipv4 } = cluster.plan.internet.wide;
  const refused: number[] = [];
  const allowed: number[] = [];
  try {
    for (let round = 0; round < rounds; round += 1) {
      progress(`samples: ${round} of ${rounds}`);
      await label(kubectl, `${LABEL}=yes`);
      allowed.push(await firstAnswer(client, ipv4));
      await label(kubectl, `${LABEL}-`);
      refused.push(await lastAnswer(client, ipv4));
    }
  } finally {
    client.close();
  }
  const revocation = milliseconds("last answer to a client that is allowed no longer", refused);
  return {
    bench: "revocation",
    setup: "milliseconds since kubectl has changed the namespace's label, in a cluster of one node",
    series: [revocation, milliseconds("first answer to one that is allowed again", allowed)],
    targets: [medianOf(revocation, LIMIT)],
  };
}

/** An Egress for labelled namespaces, and a client in one that is still to be labelled. */
async function setTheScene(kubectl: Kubectl): Promise<ProbePod> {
  const name = { namespace: CLIENTS, name: "client" };
  await kubectl.apply(namespace(EGRESS.namespace), namespace(CLIENTS));
  await label(kubectl, `${LABEL}=yes`);
  await kubectl.apply(
    egress(EGRESS, {
      replicas: 1,
      destinations: ["0.0.0.0/0", "::/0"],
      allowedNamespaces: { matchLabels: { [LABEL]: "yes" } },
    }),
    await probeProgram(CLIENTS),
  );
  await gatewaysReady(kubectl, EGRESS);
  await kubectl.apply(probePod({ ...name, image: TOOLBOX_IMAGE, annotations: clientOf(EGRESS) }));
  const client = await ProbePod.ready(kubectl, name.namespace, name.name);
  await label(kubectl, `${LABEL}-`);
  return client;
}

async function label(kubectl: Kubectl, change: string): Promise<void> {
  await kubectl.run(["label", "namespace", CLIENTS, change]);
}

async function firstAnswer(client: ProbePod, address: string): Promise<number> {
  const startedAt = performance.now();
  await waitUntil(() => isAnswered(client, address), {
    what: "an answer to the client",
    timeoutMs: PATIENCE_MS,
    intervalMs: 0,
  });
  return performance.now() - startedAt;
}

/** From now on, in milliseconds; 0 when nothing is answered any more. */
async function lastAnswer(client: ProbePod, address: string): Promise<number> {
  const startedAt = performance.now();
  let last = startedAt;
  while (performance.now() - last < SILENCE_MS) {
    if (await isAnswered(client, address)) last = performance.now();
    if (last - startedAt > PATIENCE_MS) throw new Error("the client is answered all the time");
  }
  return last - startedAt;
}

const Answered = z.object({ answer: z.string() });

/** Whether a datagram of a new flow is answered. */
async function isAnswered(client: ProbePod, address: string): Promise<boolean> {
  const probe = { do: "udp", address, port: WHOAMI_PORT, text: "who am I", timeout: ANSWER_SECONDS } as const;
  return Answered.safeParse(await client.askOne(probe, z.unknown())).success;
}
