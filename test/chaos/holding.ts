/** What programs hold: nothing of it may grow while clients, flows and gateways come and go. */

import { ToolError } from "@egress-nat/tools/system/tool-error";
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
  /** What none may ever be left of. */
  isTransient: z.literal(true).optional(),
});
export type Holding = z.infer<typeof Holding>;

/** How much larger the last quarter of the samples may be than the first. */
const TOLERANCE = 1.2;
const QUARTERS = 4;

/** The median of the last quarter may not be far above that of the first one. */
export function growth({ what, samples, isTransient }: Holding): Verdict {
  if (samples.length < QUARTERS) {
    return { name: `${what}: too few samples to tell`, value: QUARTERS - samples.length, atMost: 0 };
  }
  if (isTransient) return { name: what, value: Math.max(...samples), atMost: 0 };
  const quarter = Math.ceil(samples.length / QUARTERS);
  const before = median(samples.slice(0, quarter));
  return { name: what, value: median(samples.slice(-quarter)), atMost: Math.round(before * TOLERANCE) };
}

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? Number.NaN;
}

/**
 * Adds a sample to each. To be called when no client has a flow.
 *
 * @throws ToolError `no-sample` when one of them cannot be taken
 */
export async function addSamples(ground: Ground, holdings: readonly Holding[]): Promise<readonly Holding[]> {
  const { kubectl, clients } = ground;
  const gateways = await gatewaysOf(ground);
  const taken = [
    ...(await largest(ground, "node agent", await programsOf(kubectl, "node-agent"), PROGRAM)),
    ...(await largest(ground, "operator", await programsOf(kubectl, "operator"), PROGRAM)),
    ...(await largest(ground, "gateway", gateways, PROGRAM)),
    ...(await largest(ground, "gateway", gateways, NETWORK)),
    ...(await largest(ground, "client", clients, NETWORK)),
  ];
  return taken.map(({ what, samples, ...rest }) => {
    const before = holdings.find((holding) => holding.what === what)?.samples ?? [];
    return { what, samples: [...before, ...samples], ...rest };
  });
}

/** A script that prints numbers, one on each line, and what they are. */
interface Probe {
  readonly script: (uid: string) => string;
  readonly figures: readonly Pick<Holding, "what" | "isTransient">[];
}

const PROGRAM: Probe = {
  script: (uid) => `set -euo pipefail
    set -- $(${programOf(uid)})
    awk '/^VmRSS/ { print int($2 / 1024) }' /proc/$1/status
    ls /proc/$1/fd | wc -l`,
  figures: [{ what: "memory, MiB" }, { what: "descriptors" }],
};

/** Connections of the load (load/serve.go), not those of a gateway's own program. */
const NETWORK: Probe = {
  script: (uid) => `set -euo pipefail
    set -- $(${processesOf(uid)})
    nsenter --net=/proc/$1/ns/net nft list ruleset | wc -l
    nsenter --net=/proc/$1/ns/net conntrack -L -p tcp --dport 7100 --state ESTABLISHED | wc -l`,
  figures: [{ what: "lines of nftables" }, { what: "connections without a flow", isTransient: true }],
};

async function largest(
  { cluster }: Ground,
  whose: string,
  pods: readonly RunningPod[],
  { script, figures }: Probe,
): Promise<readonly Holding[]> {
  const printed = await Promise.all(pods.map(({ node, uid }) => cluster.node(node).run(script(uid))));
  const numbers = printed.map((text) => text.trim().split("\n").map(Number));
  return figures.map(({ what, ...rest }, index) => {
    const sample = Math.max(...numbers.map((each) => each[index] ?? Number.NaN));
    if (!Number.isFinite(sample)) throw new ToolError("no-sample", `${whose} has no ${what}`);
    return { what: `${whose}: ${what}`, samples: [sample], ...rest };
  });
}
