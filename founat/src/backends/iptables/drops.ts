import { z } from "zod";
import { unexpectedOutput } from "../../error.ts";
import { isLinkName } from "../../iproute/links.ts";

const Qdiscs = z.array(z.object({ kind: z.string(), dev: z.string(), drops: z.number().default(0) }));

/**
 * @param rules what `iptables-save -c` prints, of each family
 * @param qdiscs what `tc -s -j qdisc show` prints: filters drop what a client sends for another, and what would leave bare
 * @returns packets by the reason for which they were dropped
 * @throws FounatError `unexpected-output`
 */
export function parseDrops(rules: readonly string[], qdiscs: string): ReadonlyMap<string, number> {
  const drops = new Map<string, number>();
  const count = (reason: string, packets: number) => drops.set(reason, (drops.get(reason) ?? 0) + packets);
  for (const text of rules) {
    for (const [, packets, reason = ""] of text.matchAll(/^\[(\d+):\d+\] -A EN-D-(\w+) /gm)) {
      count(reason, Number(packets));
    }
  }
  const listing = Qdiscs.safeParse(JSON.parse(qdiscs || "[]"));
  if (!listing.success) throw unexpectedOutput("tc -s -j qdisc show", listing.error);
  for (const { kind, dev, drops: packets } of listing.data) {
    if (kind === "clsact") count(isLinkName(dev) ? "foreign_source" : "untranslated", packets);
  }
  return drops;
}
