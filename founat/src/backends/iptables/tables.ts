import { isDeepStrictEqual } from "node:util";
import type { Difference } from "../../difference.ts";

/** Table -> chain -> rules, without `-A CHAIN`. */
export type Tables = ReadonlyMap<string, Chains>;
type Chains = ReadonlyMap<string, readonly string[]>;

/**
 * One table is committed after the other. That of conntrack's exceptions comes last: until it is there no packet gets a
 * client's mark, and when it is all else is.
 */
const ORDER = ["filter", "nat", "mangle", "raw"] as const;

/** A table, a chain, or a rule of one. */
const LINE = /^(?:\[\d+:\d+\] )?(?:\*(\S+)|:(\S+) .*|-A (\S+) (.*))$/;

/** @param text as `iptables-save` prints it; what founat wants is spelled so, too */
export function parseTables(text: string): Tables {
  const tables = new Map<string, Map<string, string[]>>();
  let chains = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [, table, declared, chain = declared, rule] = LINE.exec(line) ?? [];
    if (table !== undefined) {
      chains = new Map();
      tables.set(table, chains);
    }
    if (chain === undefined) continue;
    const rules = chains.get(chain) ?? [];
    if (rule !== undefined) rules.push(rule);
    chains.set(chain, rules);
  }
  return tables;
}

/** Those by which the kernel is asked (asking.ts) are nobody's. */
const isOwn = (chain: string) => /^EN-(?!Q-)/.test(chain);
const leadsToOwn = (rule: string) => / -[jg] EN-(?!Q-)/.test(` ${rule}`);

export function holdsOwn(tables: Tables): boolean {
  return [...tables.values()].some((chains) => [...chains.keys()].some(isOwn));
}

/**
 * What of `wanted` the kernel lacks or has otherwise, and what makes it so: a text for `iptables-restore --noflush`, in
 * which chains that are as they should be do not appear, so that their counters go on.
 */
export function tableChanges(
  program: string,
  wanted: Tables,
  actual: Tables,
): { readonly differences: readonly Difference[]; readonly text: string } {
  const changes = ORDER.map((table) => chainChanges(wanted.get(table) ?? NONE, actual.get(table) ?? NONE));
  return {
    differences: changes.flatMap(({ differences }, index) =>
      differences.map((words) => ({ object: "chain", text: `${program} chain ${ORDER[index]} ${words}` })),
    ),
    text: changes
      .map(({ lines }, index) =>
        lines.length === 0 ? "" : [`*${ORDER[index]}`, ...lines, "COMMIT", ""].join("\n"),
      )
      .join(""),
  };
}

const NONE: Chains = new Map();

function chainChanges(wanted: Chains, actual: Chains) {
  const differences: string[] = [];
  const [declared, rules, gone]: string[][] = [[], [], []];
  for (const chain of new Set([...wanted.keys(), ...actual.keys()])) {
    const [ours, theirs] = [wanted.get(chain), actual.get(chain)];
    if (!isOwn(chain)) {
      // Of a built-in chain the first rule leads to founat's, and no other does.
      const [jump] = ours ?? [];
      const jumps = (theirs ?? []).filter(leadsToOwn);
      if (jumps.length <= 1 && jumps[0] === jump && (jump === undefined || theirs?.[0] === jump)) continue;
      differences.push(`${chain} has other rules`);
      rules?.push(...jumps.map((rule) => `-D ${chain} ${rule}`));
      if (jump !== undefined) rules?.push(`-I ${chain} 1 ${jump}`);
    } else if (!isDeepStrictEqual(ours, theirs)) {
      const isWhat = ours && (theirs === undefined ? "is missing" : "has other rules");
      differences.push(`${chain} ${isWhat ?? "is not founat's"}`);
      declared?.push(`:${chain} - [0:0]`);
      rules?.push(...(ours ?? []).map((rule) => `-A ${chain} ${rule}`));
      if (ours === undefined) gone?.push(`-X ${chain}`);
    }
  }
  return { differences, lines: [declared, rules, gone].flatMap((lines) => lines ?? []) };
}
