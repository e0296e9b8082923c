import { FounatError } from "../../error.ts";
import { FAMILIES, type Family, OF_IPV6 } from "../../family.ts";
import type { PeerChanges } from "../../gateway/peers.ts";
import type { GatewayPolicy } from "../../gateway/policy.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Command, Step } from "../../kernel/step.ts";
import type { Backend, FilterState } from "../backend.ts";
import { RuleListing } from "./asking.ts";
import { parseDrops } from "./drops.ts";
import {
  type Filters,
  filterChanges,
  filterRemoval,
  parseFilters,
  READ_FILTERS,
  tcStep,
  trialOf,
} from "./filters.ts";
import { peerDifferences, peerLines, peersOf } from "./peers.ts";
import { gatewayRules } from "./rules.ts";
import { destroyStep, ipsetStep, parseSets, type Sets, setChanges } from "./sets.ts";
import { holdsOwn, parseTables, type Tables, tableChanges } from "./tables.ts";
import { unavailable } from "./unavailable.ts";

const PROGRAMS = { ipv4: "iptables", ipv6: "ip6tables" } as const;

interface IptablesState {
  /** Of the families that the kernel knows. */
  readonly tables: ReadonlyMap<Family, Tables>;
  readonly sets: Sets;
  readonly filters: Filters;
}

/** A gateway's packet filter as rules of iptables, sets of ipset and filters of traffic control. */
export class IptablesBackend implements Backend {
  /** Nothing tells of any. */
  readonly transactions = { begun: 0, succeeded: 0 };
  readonly #kernel: Pick<Kernel, "run" | "read">;
  readonly #listings: Readonly<Record<Family, RuleListing>>;
  /** Whether the kernel has taken filters like those that are wanted. */
  #tried = false;
  #variant: Promise<"nft" | "legacy"> | undefined;

  constructor(kernel: Pick<Kernel, "run" | "read">) {
    this.#kernel = kernel;
    this.#listings = { ipv4: new RuleListing(kernel), ipv6: new RuleListing(kernel) };
  }

  async read(): Promise<FilterState> {
    const save = async (family: Family) => saveStep(await this.#program(family));
    const [rules4 = "", rules6 = "", sets = "", filters = "", ipv6 = ""] = await this.#kernel.read([
      await save("ipv4"),
      { ...(await save("ipv6")), ifSysctl: OF_IPV6 },
      { file: "ipset", args: ["save"], mayFail: true },
      READ_FILTERS,
      { read: [OF_IPV6], presenceOnly: true },
    ]);
    const tables = new Map([["ipv4", parseTables(rules4)]] as [Family, Tables][]);
    if (ipv6 !== "") tables.set("ipv6", parseTables(rules6));
    const state = { tables, sets: parseSets(sets), filters: parseFilters(filters) };
    return {
      exists: state.sets.size > 0 || [...tables.values()].some(holdsOwn),
      fastPath: false,
      peers: () => peersOf(state.sets),
      changes: (policy, { replaced }) => this.#changes(policy, state, replaced).catch(unavailable),
      peerDifferences: (peers) => peerDifferences(peers, state.sets),
      removal: async () => [
        ...tcStep(filterRemoval(state.filters)),
        ...(await this.#restoreSteps(new Map(), state)).steps,
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
    const saves = await Promise.all(
      FAMILIES.map(async (family) => saveStep(await this.#program(family), "-c")),
    );
    const qdiscs: Command = { file: "tc", args: ["-s", "-j", "qdisc", "show"], mayFail: true };
    const [rules4 = "", rules6 = "", qdisc = ""] = await this.#kernel.read([...saves, qdiscs]);
    return parseDrops([rules4, rules6], qdisc);
  }

  async #changes(policy: GatewayPolicy, state: IptablesState, replaced: ReadonlySet<string>) {
    const wanted = new Map<Family, Tables>();
    for (const family of state.tables.keys()) {
      const listing = this.#listings[family].of(await this.#program(family), gatewayRules(policy, family));
      wanted.set(family, await listing);
    }
    if (!this.#tried) await this.#kernel.read(trialOf(policy));
    this.#tried = true;
    const rules = await this.#restoreSteps(wanted, state);
    const sets = setChanges(policy, state.sets);
    const filters = filterChanges(policy, state.filters, replaced);
    return {
      differences: [...sets.differences, ...rules.differences, ...filters.differences],
      steps: [
        ...ipsetStep(sets.before),
        ...rules.steps,
        ...destroyStep(sets.gone),
        // What leads out of a tunnel is last.
        ...tcStep(filters.lines),
      ],
    };
  }

  async #restoreSteps(wanted: ReadonlyMap<Family, Tables>, { tables }: IptablesState) {
    const changes = [...tables].map(async ([family, actual]) => {
      const { differences, text } = tableChanges(PROGRAMS[family], wanted.get(family) ?? new Map(), actual);
      const file = `${await this.#program(family)}-restore`;
      return {
        differences,
        steps: text === "" ? [] : [{ file, args: ["-w", "5", "--noflush"], input: text }],
      };
    });
    const all = await Promise.all(changes);
    return {
      differences: all.flatMap(({ differences }) => differences),
      steps: all.flatMap(({ steps }) => steps),
    };
  }

  /** Both are in Debian's package. What says `iptables` may be either. */
  async #program(family: Family): Promise<string> {
    this.#variant ??= this.#kernel.read([{ file: "iptables-nft-save", args: ["-t", "filter"] }]).then(
      () => "nft" as const,
      (error) => {
        if (error instanceof FounatError && error.code === "kernel-command-failed") return "legacy";
        this.#variant = undefined;
        throw error;
      },
    );
    return `${PROGRAMS[family]}-${await this.#variant}`;
  }
}

function saveStep(program: string, ...args: readonly string[]): Command {
  return { file: `${program}-save`, args, mayFail: true };
}
