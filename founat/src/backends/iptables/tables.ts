import { isDeepStrictEqual } from "node:util";

/** Table -> chain -> rules, without `-A CHAIN`. */
export type Tables = ReadonlyMap<string, Chains>;
type Chains = ReadonlyMap<string, readonly string[]>;

export const NO_TABLES: Tables = new Map();

/** One is committed after the other: until the last one is there no packet gets a client's mark, and then all else is. */
const ORDER = ["filter", "nat", "mangle", "raw"];

/** A table, a chain, or a rule of one. */
const LINE = /^(?:\*(\S+)|:(\S+) .*|-A (\S+) (.*))$/;

/** @param text as `iptables-save` prints it; what founat wants is spelled so, too */
export function parseTables(text: string): Tables {
  const tables = new Map<string, Map<string, string[]>>();
  let chains = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [, table, declared, chain, rule = ""] = LINE.exec(line) ?? [];
    if (table !== undefined) chains = new Map();
    if (table !== undefined) tables.set(table, chains);
    if (declared !== undefined) chains.set(declared, []);
    if (chain !== undefined) chains.set(chain, [...(chains.get(chain) ?? []), rule]);
  }
  return tables;
}

export function holdsChains(tables: Tables, prefix: string): boolean {
  return [...tables.values()].some((chains) => [...chains.keys()].some((chain) => chain.startsWith(prefix)));
}

/**
 * What of `wanted` the kernel lacks or has otherwise, and what makes it so: a text for `iptables-restore --noflush`, in
 * which chains that are as they should be do not appear, so that their counters go on.
 *
 * @param prefix of the names of chains that are compared
 */
export function tableChanges(wanted: Tables, actual: Tables, prefix: string) {
  const changes = ORDER.map((table) => ({
    table,
    ...chainChanges(wanted.get(table) ?? new Map(), actual.get(table) ?? new Map(), prefix),
  })).filter(({ lines }) => lines.length > 0);
  return {
    differences: changes.flatMap(({ table, words }) => words.map((text) => `chain ${table} ${text}`)),
    text: changes.map(({ table, lines }) => [`*${table}`, ...lines, "COMMIT", ""].join("\n")).join(""),
  };
}

function chainChanges(wanted: Chains, actual: Chains, prefix: string) {
  const words: string[] = [];
  const [declared, rules, gone]: [string[], string[], string[]] = [[], [], []];
  for (const chain of new Set([...wanted.keys(), ...actual.keys()])) {
    const [ours, theirs] = [wanted.get(chain), actual.get(chain)];
    if (chain.startsWith(prefix)) {
      if (isDeepStrictEqual(ours, theirs)) continue;
      words.push(
        `${chain} ${ours === undefined ? "is not founat's" : theirs ? "has other rules" : "is missing"}`,
      );
      declared.push(`:${chain} - [0:0]`);
      rules.push(...(ours ?? []).map((rule) => `-A ${chain} ${rule}`));
      if (ours === undefined) gone.push(`-X ${chain}`);
    } else {
      // Of a built-in chain the first rule leads to founat's, and no other does.
      const jump = ours?.[0];
      const jumps = (theirs ?? []).filter((rule) => new RegExp(`(^| )-[jg] ${prefix}`).test(rule));
      if (jumps.length === (jump ? 1 : 0) && (!jump || theirs?.[0] === jump)) continue;
      words.push(`${chain} has other rules`);
      rules.push(...jumps.map((rule) => `-D ${chain} ${rule}`), ...(jump ? [`-I ${chain} 1 ${jump}`] : []));
    }
  }
  return { words, lines: [...declared, ...rules, ...gone] };
}
