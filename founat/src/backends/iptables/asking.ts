import type { Kernel } from "../../kernel/kernel.ts";
import { CREATE_SETS } from "./sets.ts";
import { NO_TABLES, parseTables, type Tables, tableChanges } from "./tables.ts";

/** Of the chains by which the kernel is asked. A program that was killed leaves them behind. */
export const ASKING_PREFIX = "EQ-";

/**
 * To its caller a question, which leaves nothing but empty sets: one step, because the steps of a read have no order. What
 * the kernel does not take as a whole it may have taken in part.
 */
const LIST_AND_REMOVE = `printf %s "$3" | ipset -exist restore || exit
  "$1-restore" -w 5 --noflush && "$1-save"
  status=$?
  printf %s "$2" | "$1-restore" -w 5 --noflush && exit "$status"`;

/**
 * How the kernel has rules. `iptables-save` prints them in another spelling than `iptables-restore` reads, and in another one
 * in each version; so it is asked, by chains of other names to which nothing leads, which are there for as long as that takes.
 */
export class RuleListing {
  /** Of the last text only: it changes with the uplink and the port. */
  #known: { readonly text: string; readonly tables: Tables } | undefined;

  /**
   * @param program for instance `iptables-nft`
   * @param text as `iptables-restore` reads it
   * @throws FounatError `kernel-command-failed`, where the kernel or the program lacks something
   */
  async of(kernel: Pick<Kernel, "read">, program: string, text: string): Promise<Tables> {
    if (this.#known?.text === text) return this.#known.tables;
    // What leads to founat's chains is asked for in chains, too.
    const asked = parseTables(
      text.replaceAll(/^-A ([A-Z]+) /gm, "-A EN-HOOK-$1 ").replaceAll("EN-", ASKING_PREFIX),
    );
    const [make, remove] = [
      tableChanges(asked, NO_TABLES, ASKING_PREFIX).text,
      tableChanges(NO_TABLES, asked, ASKING_PREFIX).text,
    ];
    const args = ["-c", LIST_AND_REMOVE, "sh", program, remove, `${CREATE_SETS.join("\n")}\n`];
    const [output = ""] = await kernel.read([{ file: "sh", args, input: make }]);
    const answers = new RegExp(`^\\*|^(:|-A )${ASKING_PREFIX}`);
    const lines = output.split("\n").filter((line) => answers.test(line));
    const tables = parseTables(
      lines.join("\n").replaceAll(`${ASKING_PREFIX}HOOK-`, "").replaceAll(ASKING_PREFIX, "EN-"),
    );
    this.#known = { text, tables };
    return tables;
  }
}
