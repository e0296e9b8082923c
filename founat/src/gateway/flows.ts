import { FAMILIES } from "../family.ts";
import type { Step } from "../step.ts";

/** The steps whose output {@link masqueradedSources} and {@link liveFlows} take. */
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
  for (const { source } of clientFlows(listings)) sources.add(source);
  return sources;
}

/** How many flows of clients are not over. */
export function liveFlows(listings: readonly string[]): number {
  let live = 0;
  for (const { state } of clientFlows(listings)) if (!OVER.test(state)) live += 1;
  return live;
}

/** Those that leave with another address: a gateway masquerades nothing else. There may be very many. */
function* clientFlows(listings: readonly string[]): Generator<{ state: string; source: string }> {
  for (const listing of listings) {
    for (const [, state = "", source = "", replyTo = ""] of listing.matchAll(FLOW)) {
      if (source !== replyTo) yield { state, source };
    }
  }
}
