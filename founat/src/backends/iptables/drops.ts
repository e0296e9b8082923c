import { z } from "zod";
import { isLinkName } from "../../iproute/links.ts";
import { understood } from "../../kernel/output.ts";

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
  const listing = understood(Qdiscs, "tc -s -j qdisc show", JSON.parse(qdiscs || "[]"));
  for (const { kind, dev, drops: packets } of listing) {
    if (kind === "clsact") count(isLinkName(dev) ? "foreign_source" : "untranslated", packets);
  }
  return drops;
}
