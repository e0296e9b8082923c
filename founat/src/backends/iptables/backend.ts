import { FAMILIES, type Family } from "@egress-nat/addresses";
import { inOrder } from "../../difference.ts";
import { FounatError } from "../../error.ts";
import type { PeerChanges, Peers } from "../../gateway/peers.ts";
import type { GatewayPolicy } from "../../gateway/policy.ts";
import { OF_IPV6 } from "../../kernel/ipv6.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Command, Step } from "../../kernel/step.ts";
import type { Backend, FilterState } from "../backend.ts";
import { ASKING_PREFIX, RuleListing } from "./asking.ts";
import { parseDrops } from "./drops.ts";
import * as tc from "./filters.ts";
import { peerDifferences, peerLines, peersOf } from "./peers.ts";
import { gatewayRules } from "./rules.ts";
import { destroyStep, ipsetStep, parseSets, type Sets, setChanges } from "./sets.ts";
import { holdsChains, NO_TABLES, parseTables, type Tables, tableChanges } from "./tables.ts";
import { unavailable } from "./unavailable.ts";

const PROGRAMS = { ipv4: "iptables", ipv6: "ip6tables" } as const;
const PREFIX = "EN-";
type Variant = "nft" | "legacy";

interface IptablesState {
  readonly variant: Variant;
  /** Of the families that the kernel knows. */
  readonly tables: ReadonlyMap<Family, Tables>;
  readonly sets: Sets;
  readonly filters: tc.Filters;
}

/** A gateway's packet filter as rules of iptables, sets of ipset and filters of traffic control. */
export class IptablesBackend implements Backend {
  /** Nothing tells of any. */
  readonly transactions = { begun: 0, succeeded: 0 };
  readonly #kernel: Pick<Kernel, "run" | "read">;
  readonly #listings = { ipv4: new RuleListing(), ipv6: new RuleListing() };
  /** Whether all programs are there, and the kernel has taken what is wanted. */
  #tried = false;
  #variant: Promise<Variant> | undefined;

  constructor(kernel: Pick<Kernel, "run" | "read">) {
    this.#kernel = kernel;
  }

  /** Sets come before all else, and go after it. What is not installed has made nothing. */
  async exists(): Promise<boolean> {
    const question = { file: "ipset", args: ["list", "-name"], mayFail: !this.#tried };
    const [names = ""] = await this.#kernel.read([question]);
    return /^en-/m.test(names);
  }

  async read(): Promise<FilterState> {
    const variant = await this.#variantHere();
    const mayFail = !this.#tried;
    const [rules4 = "", rules6 = "", sets = "", filters = "", ipv6 = ""] = await this.#kernel.read([
      { ...saveStep("ipv4", variant), mayFail },
      { ...saveStep("ipv6", variant), mayFail, ifSysctl: OF_IPV6 },
      { file: "ipset", args: ["save"], mayFail },
      { ...tc.READ_FILTERS, mayFail },
      { read: [OF_IPV6], presenceOnly: true },
    ]);
    const tables = new Map<Family, Tables>([["ipv4", parseTables(rules4)]]);
    if (ipv6 !== "") tables.set("ipv6", parseTables(rules6));
    const state = { variant, tables, sets: parseSets(sets), filters: tc.parseFilters(filters) };
    return {
      exists: state.sets.size > 0 || [...tables.values()].some((of) => holdsChains(of, PREFIX)),
      fastPath: false,
      peers: () => peersOf(state.sets),
      changes: (policy, { replaced }, newcomers) =>
        this.#changes(policy, state, replaced, newcomers).catch(unavailable),
      peerDifferences: (peers) => peerDifferences(peers, state.sets),
      removal: [
        ...tc.filterRemoval(state.filters),
        ...restoration(new Map(), state).steps,
        ...restoration(new Map(), state, ASKING_PREFIX).steps,
        ...destroyStep([...state.sets.keys()]),
      ],
    };
  }

  async run(steps: readonly Step[]): Promise<void> {
    if (steps.length > 0) await this.#kernel.run(steps);
  }

  peerSteps(changes: PeerChanges): readonly Step[] {
    return ipsetStep(peerLines(changes));
  }

  async drops(): Promise<ReadonlyMap<string, number>> {
    const variant = await this.#variantHere();
    const [qdiscs = "", ...rules] = await this.#kernel.read([
      { file: "tc", args: ["-s", "-j", "qdisc", "show"], mayFail: true },
      ...FAMILIES.map((family) => ({ ...saveStep(family, variant, "-c"), mayFail: true })),
    ]);
    return parseDrops(rules, qdiscs);
  }

  async #changes(
    policy: GatewayPolicy,
    state: IptablesState,
    replaced: ReadonlySet<string>,
    newcomers: Peers,
  ) {
    const wanted = new Map<Family, Tables>();
    for (const family of state.tables.keys()) {
      const program = `${PROGRAMS[family]}-${state.variant}`;
      const text = gatewayRules(policy, family);
      wanted.set(family, await this.#listings[family].of(this.#kernel, program, text));
    }
    if (!this.#tried) await this.#kernel.read([tc.trialOf(policy)]);
    this.#tried = true;
    const sets = setChanges(policy, state.sets);
    const clients = peerLines({ put: newcomers, removed: new Map() });
    const filters = tc.filterChanges(policy, state.filters, replaced);
    // What leads out of a tunnel is last.
    return inOrder(
      { differences: sets.differences, steps: ipsetStep([...sets.before, ...clients]) },
      restoration(wanted, state),
      { differences: [], steps: destroyStep(sets.gone) },
      { differences: filters.differences, steps: tc.tcStep(filters.lines) },
    );
  }

  /** Both are in Debian's package, and what says `iptables` may be either. */
  #variantHere(): Promise<Variant> {
    this.#variant ??= this.#kernel.read([{ file: "iptables-nft-save", args: ["-t", "filter"] }]).then(
      () => "nft" as const,
      (error) => {
        if (error instanceof FounatError && error.code === "kernel-command-failed") return "legacy";
        this.#variant = undefined;
        throw error;
      },
    );
    return this.#variant;
  }
}

function saveStep(family: Family, variant: Variant, ...args: readonly string[]): Command {
  return { file: `${PROGRAMS[family]}-${variant}-save`, args };
}

/** One process for each family in which rules differ. */
function restoration(
  wanted: ReadonlyMap<Family, Tables>,
  { tables, variant }: IptablesState,
  prefix = PREFIX,
) {
  const all = Array.from(tables, ([family, actual]) => ({
    file: PROGRAMS[family],
    ...tableChanges(wanted.get(family) ?? NO_TABLES, actual, prefix),
  })).filter(({ text }) => text !== "");
  return {
    differences: all.flatMap(({ file, differences }) =>
      differences.map((words) => ({ object: "chain", text: `${file} ${words}` })),
    ),
    steps: all.map(({ file, text }) => {
      const args = ["-w", "5", "--noflush"];
      return { file: `${file}-${variant}-restore`, args, input: text };
    }),
  };
}
