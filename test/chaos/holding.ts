/** What programs hold: nothing of it may grow while clients, flows and gateways come and go. */

import { z } from "zod";
import { processesOf, programOf } from "../bed/workload/pod-processes.ts";
import type { Verdict } from "./expected.ts";
import { type Ground, gatewaysOf } from "./ground.ts";
import { programsOf } from "./harm.ts";
import type { RunningPod } from "./pods.ts";

export const Holding = z.object({
  /** Whose, and what. */
  what: z.string(),
  /** In the order in which they were taken: each the largest of all pods. */
  samples: z.array(z.number()).min(1),
});
export type Holding = z.infer<typeof Holding>;

/** How much larger the last quarter of the samples may be than the first. */
const TOLERANCE = 1.2;

/** The median of the last quarter may not be far above that of the first one. */
export function growth({ what, samples }: Holding): Verdict {
  const quarter = Math.ceil(samples.length / 4);
  const before = median(samples.slice(0, quarter));
  return { name: what, value: median(samples.slice(-quarter)), atMost: Math.round(before * TOLERANCE) };
}

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? 0;
}

/** Adds a sample to each. To be called when no client has a flow: then no connection may be left. */
export async function addSamples(ground: Ground, holdings: readonly Holding[]): Promise<readonly Holding[]> {
  const { kubectl, clients } = ground;
  const gateways = await gatewaysOf(ground);
  const taken = {
    ...(await largest(ground, "node agent", await programsOf(kubectl, "node-agent"), PROGRAM)),
    ...(await largest(ground, "operator", await programsOf(kubectl, "operator"), PROGRAM)),
    ...(await largest(ground, "gateway", gateways, PROGRAM)),
    ...(await largest(ground, "gateway", gateways, NETWORK)),
    ...(await largest(ground, "client", clients, NETWORK)),
  };
  return Object.entries(taken).map(([what, sample]) => ({
    what,
    samples: [...(holdings.find((holding) => holding.what === what)?.samples ?? []), sample],
  }));
}

/** A script that prints numbers, one on each line, and what they are. */
interface Probe {
  readonly script: (uid: string) => string;
  readonly names: readonly string[];
}

const PROGRAM: Probe = {
  script: (uid) => `
    set -- $(${programOf(uid)})
    awk '/^VmRSS/ { print int($2 / 1024) }' /proc/$1/status
    ls /proc/$1/fd | wc -l`,
  names: ["memory, MiB", "descriptors"],
};

const NETWORK: Probe = {
  script: (uid) => `
    set -- $(${processesOf(uid)})
    nsenter --net=/proc/$1/ns/net nft list ruleset | wc -l
    nsenter --net=/proc/$1/ns/net conntrack -L -p tcp --state ESTABLISHED 2>/dev/null | wc -l`,
  names: ["lines of nftables", "connections without a flow"],
};

async function largest(
  { cluster }: Ground,
  whose: string,
  pods: readonly RunningPod[],
  { script, names }: Probe,
): Promise<Record<string, number>> {
  const printed = await Promise.all(pods.map(({ node, uid }) => cluster.node(node).run(script(uid))));
  const numbers = printed.map((text) => text.trim().split("\n").map(Number));
  return Object.fromEntries(
    names.map((name, index) => [
      `${whose}: ${name}`,
      Math.max(...numbers.map((each) => each[index] ?? Number.NaN)),
    ]),
  );
}
