import type { Kernel } from "../../kernel/kernel.ts";
import { CREATE_SETS } from "./sets.ts";
import { parseTables, type Tables } from "./tables.ts";

/** To its caller a question, which leaves nothing but empty sets: one step, because the steps of a read have no order. */
const LIST_AND_REMOVE =
  'printf %s "$3" | ipset -exist restore && "$1-restore" -w 5 --noflush && "$1-save" && printf %s "$2" | "$1-restore" -w 5 --noflush';

/**
 * How the kernel has rules. `iptables-save` prints them in another spelling than `iptables-restore` reads, and in another one
 * in each version; so it is asked, by chains of other names to which nothing leads, which are there for as long as that takes.
 */
export class RuleListing {
  readonly #kernel: Pick<Kernel, "read">;
  /** Of the last text only: it changes with the uplink and the port. */
  #known: { readonly text: string; readonly tables: Tables } | undefined;

  constructor(kernel: Pick<Kernel, "read">) {
    this.#kernel = kernel;
  }

  /**
   * @param program for instance `iptables-nft`
   * @param text as `iptables-restore` reads it
   * @throws FounatError `kernel-command-failed`, where the kernel or the program lacks something
   */
  async of(program: string, text: string): Promise<Tables> {
    if (this.#known?.text === text) return this.#known.tables;
    const { make, remove } = question(text);
    const args = ["-c", LIST_AND_REMOVE, "sh", program, remove, `${CREATE_SETS.join("\n")}\n`];
    const [output = ""] = await this.#kernel.read([{ file: "sh", args, input: make }]);
    const tables = answer(output);
    this.#known = { text, tables };
    return tables;
  }
}

/** Jumps of built-in chains are asked for in chains, too. */
function question(text: string): { readonly make: string; readonly remove: string } {
  const asked = text.replaceAll(/^-A ([A-Z]+) /gm, "-A EN-HOOK-$1 ").replaceAll("EN-", "EN-Q-");
  const tables = [...parseTables(asked)].map(([table, chains]) => ({
    table,
    declared: [...chains.keys()].map((chain) => `:${chain} - [0:0]`),
    rules: [...chains].flatMap(([chain, rules]) => rules.map((rule) => `-A ${chain} ${rule}`)),
    removals: [...chains.keys()].map((chain) => `-X ${chain}`),
  }));
  const script = (lines: "rules" | "removals") =>
    tables.map((of) => [`*${of.table}`, ...of.declared, ...of[lines], "COMMIT", ""].join("\n")).join("");
  return { make: script("rules"), remove: script("removals") };
}

function answer(output: string): Tables {
  const lines = output.split("\n").filter((line) => line.startsWith("*") || line.includes("EN-Q-"));
  return parseTables(lines.join("\n").replaceAll("EN-Q-HOOK-", "").replaceAll("EN-Q-", "EN-"));
}
