import type { ClientPolicy } from "../../client/policy.ts";
import type { Changes } from "../../difference.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Command, Step } from "../../kernel/step.ts";
import { creationScript, tableDifferences, tableScript } from "./diff.ts";
import { CLIENT_TABLE, guardTable } from "./guard-table.ts";
import { tableListing } from "./listing.ts";
import type { NftTableState } from "./state.ts";
import { nftScript } from "./table.ts";

/** What the kernel holds of a client's guard; undefined where there is none. */
export type GuardState = NftTableState | undefined;

/** Fails if there is none. */
export const READ_GUARD: Command = {
  file: "nft",
  args: ["-j", "list", "table", "inet", CLIENT_TABLE],
  mayFail: true,
};

/** The guard that a policy asks for. */
export function guardOf(policy: ClientPolicy) {
  const table = guardTable(policy);
  return {
    /** How nft lists it; throws as {@link tableListing}. */
    listing: (kernel: Kernel): Promise<GuardState> => tableListing(table, kernel),
    /** @param listing where that is known */
    changes: (state: GuardState, listing?: GuardState): Changes => {
      const differences = tableDifferences(table, state, { listing });
      const script = () => nftScript(tableScript(table, state, { listing }));
      return { differences, steps: differences.length > 0 ? [script()] : [] };
    },
    /** Fails where there is a guard. */
    creation: (): Step => nftScript(creationScript(table)),
  };
}

export function guardRemoval(state: GuardState): Step[] {
  return state === undefined ? [] : [nftScript(`delete table inet ${CLIENT_TABLE}\n`)];
}
