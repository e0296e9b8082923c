import { FAMILIES } from "../family.ts";
import type { Step } from "../step.ts";

/** The steps whose output {@link masqueradedSources} takes. */
export const READ_FLOWS: readonly Step[] = FAMILIES.map((family) => ({
  file: "conntrack",
  args: ["-L", "-f", family],
}));

/** What is before the tuples, original tuple, then what a reply looks like. */
const FLOW = /^(.*?)\bsrc=(\S+) .*?\bsrc=\S+ dst=(\S+)/gm;

/** TCP that has nothing more to say (nf_conntrack_proto_tcp.c); of a flow in the flowtable no state is listed. */
const OVER = /\b(?:TIME_WAIT|CLOSE)\b/;

/** The sources of flows that leave with another address: those of clients, for a gateway masquerades nothing else. */
export function masqueradedSources(listings: readonly string[]): ReadonlySet<string> {
  const sources = new Set<string>();
  for (const listing of listings) {
    for (const [, , source = "", replyTo = ""] of listing.matchAll(FLOW)) {
      if (source !== replyTo) sources.add(source);
    }
  }
  return sources;
}

/** How many flows of clients are not over. */
export function liveFlows(listings: readonly string[]): number {
  return listings
    .flatMap((listing) => [...listing.matchAll(FLOW)])
    .filter(([, state = "", source, replyTo]) => source !== replyTo && !OVER.test(state)).length;
}
