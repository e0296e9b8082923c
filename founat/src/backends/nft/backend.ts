import { availableParallelism } from "node:os";
import type { PeerChanges } from "../../gateway/peers.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Command, Step } from "../../kernel/step.ts";
import type { Backend, FilterState } from "../backend.ts";
import { parseDrops, READ_DROPS } from "./drops.ts";
import { tableChanges } from "./gateway-changes.ts";
import { CLIENT_SETS, GATEWAY_TABLE, gatewayTable } from "./gateway-table.ts";
import { DormantListing } from "./listing.ts";
import { inShares, peerDifferences, peerScript, peersOf } from "./peers.ts";
import { parseTable } from "./state.ts";
import { nftScript } from "./table.ts";
import { OwnTransactions } from "./transactions.ts";

/** Nothing of it stays: nft only asks the kernel whether it would take it. */
const FLOWTABLE_TRIAL = {
  file: "nft",
  args: ["--check", "-f", "-"],
  input: `table inet egress_nat_trial {
  flowtable trial { hook ingress priority filter; devices = { "lo" }; }
  chain trial { flow add @trial; }
}
`,
};

/** A gateway's packet filter as a table of nftables. */
export class NftBackend implements Backend {
  readonly transactions = new OwnTransactions();
  readonly #kernel: Pick<Kernel, "run" | "read">;
  readonly #listing = new DormantListing();

  constructor(kernel: Pick<Kernel, "run" | "read">) {
    this.#kernel = kernel;
  }

  async exists(): Promise<boolean> {
    const [output = ""] = await this.#kernel.read([readTable("-t")]);
    return output !== "";
  }

  async read({ elements }: { readonly elements: boolean }): Promise<FilterState> {
    const [[output], fastPath] = await Promise.all([
      this.#kernel.read([readTable(...(elements ? [] : ["-t"]))]),
      this.#kernel.read([FLOWTABLE_TRIAL]).then(
        () => true,
        () => false,
      ),
    ]);
    const table = parseTable(output ?? "");
    return {
      exists: table !== undefined,
      fastPath,
      peers: () => peersOf(table),
      changes: async (policy, { present, replaced }, newcomers) => {
        const wanted = gatewayTable(policy, fastPath);
        const keep = elements ? CLIENT_SETS : new Set(wanted.sets.map(({ name }) => name));
        // A table that is missing, or lacks chains because their links are, is recreated whatever else it holds.
        const isWhole = table !== undefined && policy.tunnels.every(({ name }) => present.has(name));
        const listing = isWhole ? await this.#listing.of(wanted, this.#kernel, this.transactions) : undefined;
        return tableChanges(wanted, table, replaced, { keep, listing }, newcomers);
      },
      removal: [nftScript(`delete table inet ${GATEWAY_TABLE}\n`)],
      peerDifferences: (peers) => peerDifferences(peers, table),
    };
  }

  async run(steps: readonly Step[]): Promise<void> {
    if (steps.length === 0) return;
    const count = steps.filter((step) => "file" in step && step.file === "nft").length;
    await this.transactions.during(count, () => this.#kernel.run(steps));
  }

  peerSteps(changes: PeerChanges): readonly Step[] {
    const scripts = inShares(changes, availableParallelism()).map(peerScript);
    return scripts.filter((script) => script !== "").map(nftScript);
  }

  async drops(): Promise<ReadonlyMap<string, number>> {
    return parseDrops((await this.#kernel.read(READ_DROPS))[0] ?? "");
  }
}

function readTable(...options: readonly string[]): Command {
  return { file: "nft", args: [...options, "-j", "list", "table", "inet", GATEWAY_TABLE], mayFail: true };
}
