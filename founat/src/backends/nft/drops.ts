import { z } from "zod";
import { DROP_REASONS } from "../../gateway/policy.ts";
import { understood } from "../../kernel/output.ts";
import type { Step } from "../../kernel/step.ts";
import { GATEWAY_TABLE } from "./gateway-table.ts";

/** The step whose output {@link parseDrops} takes; it costs the same however many clients there are. */
export const READ_DROPS: readonly Step[] = [
  { file: "nft", args: ["-j", "list", "counters", "table", "inet", GATEWAY_TABLE], mayFail: true },
];

const Counters = z.object({
  nftables: z.array(
    z.object({ counter: z.object({ name: z.enum(DROP_REASONS), packets: z.number() }).optional() }),
  ),
});

/**
 * @param output empty where there is no such table
 * @returns packets by the reason for which they were dropped
 * @throws FounatError `unexpected-output`
 */
export function parseDrops(output: string): ReadonlyMap<string, number> {
  if (output.trim() === "") return new Map();
  const { nftables } = understood(Counters, "nft -j list counters", JSON.parse(output));
  return new Map(
    nftables.flatMap(({ counter }) => (counter ? [[counter.name, counter.packets] as const] : [])),
  );
}
