import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { describe, inject, test } from "vitest";
import { z } from "zod";
import type { PlacedPod } from "../../bed/workload/gateways.ts";
import * as gateways from "../../bed/workload/gateways.ts";
import { Kubectl, type Manifest } from "../../bed/workload/kubectl.ts";
import { clientOf, type EgressName, type PodOptions } from "../../bed/workload/manifests.ts";
import { NodeShell, nodeShellName } from "../../bed/workload/node-shell.ts";
import * as events from "../../bed/workload/pod-events.ts";
import { ProbePod } from "../../bed/workload/probe-pod.ts";
import { CAST } from "./cast.ts";
import { type BothFamilies, Internet, type InternetAccess } from "./internet.ts";
import { NAMESPACE } from "./names.ts";
import type { Settings } from "./settings.ts";

/** What the global setup made and every test file finds: plain data, as it crosses a process boundary. */
export interface World {
  /** Name of the cluster that it is, absent on one that is not the tests' own. */
  readonly cluster?: string;
  /** kubectl and helm with the arguments that name the cluster, and what must run before them. */
  readonly kubectl: readonly string[];
  readonly helm: readonly string[];
  /** Names of two nodes at least. */
  readonly nodes: readonly string[];
  /** Image of the test pods. */
  readonly image: string;
  /** How kube-proxy was told to work; absent on a cluster that is not the tests' own. */
  readonly proxyMode?: Settings["proxyMode"];
  /** The `gatewaySelection` of Egresses. */
  readonly selection: Settings["selection"];
  /** Absent on a cluster that is not the tests' own. */
  readonly internet?: InternetAccess;
  /** Commands that stop and start the apiserver; absent on a cluster that is not the tests' own. */
  readonly apiserver?: { readonly stop: readonly string[]; readonly start: readonly string[] };
  /** The release is the tests' own: they may take it away. */
  readonly mayUninstall: boolean;
  /** Repeat what is worth repeating. */
  readonly long: boolean;
}

declare module "vitest" {
  interface ProvidedContext {
    world: World;
  }
}

export const world: World = inject("world");
export const kubectl = new Kubectl(world.kubectl);

const standing = new Map<string, Promise<ProbePod>>();

/** A pod that is there from the first test to the last. */
function standingPod(name: string): Promise<ProbePod> {
  const pod = standing.get(name) ?? ProbePod.ready(kubectl, NAMESPACE, name);
  standing.set(name, pod);
  return pod;
}

/** A pod of the cast. */
export function player(name: keyof typeof CAST): Promise<ProbePod> {
  return standingPod(CAST[name]);
}

/** What makes a test pod a client of an Egress. */
export function client(name: string, egress: EgressName): PodOptions {
  return { name, namespace: NAMESPACE, image: world.image, annotations: clientOf(egress) };
}

/** A node as other pods see it, and root on it. */
export async function nodeOf(pod: { readonly node: string }): Promise<NodeShell> {
  return new NodeShell(await standingPod(nodeShellName(pod.node)));
}

/** Test cases that need servers outside the cluster; skipped where the cluster is not the tests' own. */
export function describeOnline(name: string, cases: (internet: Internet) => void): void {
  const access = world.internet;
  if (access === undefined) {
    describe(name, () => test.skip("needs the internet of the test cluster"));
  } else {
    describe(name, () => cases(new Internet(access)));
  }
}

/** Test cases that end with the product gone; skipped where the release is not the tests' own. */
export function describeOwnRelease(name: string, cases: () => void): void {
  describe(name, world.mayUninstall ? cases : () => test.skip("would uninstall a release that is in use"));
}

/** The gateway pods of an Egress that are not being deleted. */
export function gatewaysOf(egress: EgressName): Promise<PlacedPod[]> {
  return gateways.gatewaysOf(kubectl, egress);
}

/** Waits until an Egress has all the gateways that it asks for. */
export function gatewaysReady(egress: EgressName): Promise<void> {
  return gateways.gatewaysReady(kubectl, egress);
}

const Service = z.object({ spec: z.object({ clusterIPs: z.array(z.string()) }) });

/** The addresses of the Egress's Service. */
export async function serviceOf({ namespace, name }: EgressName): Promise<BothFamilies> {
  const { spec } = await kubectl.get(Service, "service", name, "-n", namespace);
  return {
    ipv4: spec.clusterIPs.find((ip) => ip.includes(".")) ?? "",
    ipv6: spec.clusterIPs.find((ip) => ip.includes(":")) ?? "",
  };
}

const Slices = z.object({
  items: z.array(z.object({ clients: z.array(z.object({ addresses: z.array(z.string()) })).default([]) })),
});

/** The addresses of all clients in the slices of an Egress's namespace. */
export async function sliceAddresses({ namespace }: EgressName): Promise<string[]> {
  const { items } = await kubectl.get(Slices, "egressclientslices", "-n", namespace);
  return items.flatMap(({ clients }) => clients.flatMap(({ addresses }) => addresses));
}

/** Waits for an event about a pod with such a message. */
export async function podEvent(pod: Pick<Manifest, "metadata">, message: RegExp): Promise<void> {
  await waitUntil(async () => (await podEvents(pod)).some((text) => message.test(text)), {
    what: `an event of pod ${pod.metadata.name} that matches ${message}`,
    timeoutMs: 90_000,
    intervalMs: 1000,
    explain: async () => (await podEvents(pod)).join("\n"),
  });
}

/** The messages of the events about a pod. */
export function podEvents({ metadata }: Pick<Manifest, "metadata">): Promise<string[]> {
  return events.podEvents(kubectl, { namespace: metadata.namespace ?? "default", name: metadata.name });
}
