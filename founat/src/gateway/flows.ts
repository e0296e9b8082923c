import { FAMILIES, familyOf } from "@egress-nat/addresses";
import { FounatError } from "../error.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Step } from "../kernel/step.ts";

/** The steps whose output {@link masqueradedSources} and {@link countLive} take. */
export const READ_FLOWS: readonly Step[] = FAMILIES.map((family) => ({
  file: "conntrack",
  args: ["-L", "-f", family],
}));

/** What is before the tuples, original tuple, then what a reply looks like. */
const FLOW = /^(.*?)\bsrc=(\S+) .*?\bsrc=\S+ dst=(\S+)/gm;

/** TCP that has nothing more to say (nf_conntrack_proto_tcp.c); of a flow in the flowtable no state is listed. */
const OVER = /\b(?:TIME_WAIT|CLOSE)\b/;

/** The sources of flows that leave with another address. */
export function masqueradedSources(listings: readonly string[]): ReadonlySet<string> {
  const sources = new Set<string>();
  for (const { source, isMasqueraded } of flows(listings)) if (isMasqueraded) sources.add(source);
  return sources;
}

/**
 * How many flows of a gateway's clients are not over: one that is about to end waits for them. The kernel alone knows, also
 * where another program has let them in.
 *
 * @throws FounatError `kernel-command-failed`
 */
export async function liveFlows(kernel: Pick<Kernel, "read">): Promise<number> {
  return countLive(await kernel.read(READ_FLOWS));
}

/** How many of the flows of clients are not over. */
export function countLive(listings: readonly string[]): number {
  let live = 0;
  for (const { state, isMasqueraded } of flows(listings)) if (isMasqueraded && !OVER.test(state)) live += 1;
  return live;
}

/** What conntrack says when a flow ended by itself between its look at the list and its deletion. */
const GONE = "such conntrack doesn't exist";

/**
 * Ends the flows that addresses have begun; outer packets have none. conntrack stops at the first flow that is gone
 * already: what it had to do is done with that one, and the others are tried again. Each time a flow fewer is left.
 *
 * @throws FounatError `kernel-command-failed`
 */
export async function endFlows(
  kernel: Pick<Kernel, "run" | "read">,
  addresses: Iterable<string>,
): Promise<void> {
  const sources = new Set(addresses);
  if (sources.size === 0) return;
  const input = Array.from(sources, (address) => `-D -f ${familyOf(address)} -s ${address}\n`).join("");
  // One process for all lines. conntrack reads them from a file with a name. Node's standard input has none, because it
  // is a socket; that of a pipe has one.
  const step = { file: "sh", args: ["-c", "cat | conntrack --load-file /proc/self/fd/0"], input };
  let left: number | undefined;
  for (;;) {
    try {
      await kernel.run([step]);
      return;
    } catch (error) {
      const isGone = error instanceof FounatError && error.message.includes(GONE);
      if (!isGone || left === 0) throw error;
      left = left === undefined ? flowsOf(sources, await kernel.read(READ_FLOWS)) : left - 1;
    }
  }
}

function flowsOf(sources: ReadonlySet<string>, listings: readonly string[]): number {
  let count = 0;
  for (const { source } of flows(listings)) if (sources.has(source)) count += 1;
  return count;
}

/** There may be very many. Those of clients leave with another address: a gateway masquerades nothing else. */
function* flows(listings: readonly string[]) {
  for (const listing of listings) {
    for (const [, state = "", source = "", replyTo] of listing.matchAll(FLOW)) {
      yield { state, source, isMasqueraded: source !== replyTo };
    }
  }
}
