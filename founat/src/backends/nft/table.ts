import { createHash } from "node:crypto";
import type { Command } from "../../kernel/step.ts";

/** One rule: its text in nft's language, and a comment that says what it is for. */
export interface NftRule {
  readonly text: string;
  readonly comment: string;
}

export interface NftChain {
  readonly name: string;
  /**
   * Where the kernel calls it, for instance `type filter hook output priority filter; policy accept;`; absent: rules of
   * other chains go to it.
   */
  readonly hook?: string;
  readonly comment: string;
  readonly rules: readonly NftRule[];
}

export interface NftSet {
  readonly name: string;
  readonly kind: "set" | "map";
  /** Of the keys, and for maps `: ` and that of the values, for instance `ipv4_addr : mark`. */
  readonly type: string;
  /** Whether `type` names expressions, whose types it has, because that of some has no name. */
  readonly typeof?: boolean;
  /** Whether it holds ranges of addresses. */
  readonly interval?: boolean;
  readonly comment: string;
  /** As nft prints them; map entries as `key : value`. */
  readonly elements: readonly string[];
}

/**
 * Flows that the kernel carries from device to device by itself, without routes and rules
 * (https://docs.kernel.org/networking/nf_flowtable.html).
 */
export interface NftFlowtable {
  readonly name: string;
  readonly comment: string;
  readonly devices: readonly string[];
}

/** A table of family inet that belongs to founat alone. */
export interface NftTable {
  readonly name: string;
  readonly comment: string;
  /** Whether it sleeps: no packet meets its chains. */
  readonly dormant?: boolean;
  readonly sets: readonly NftSet[];
  /** Names of counters, which rules refer to; they count on when rules are written again. */
  readonly counters?: readonly string[];
  readonly flowtables?: readonly NftFlowtable[];
  readonly chains: readonly NftChain[];
}

/**
 * Chains as nft reads them.
 *
 * @param script a line for each rule. Comments stand above: that of a rule is also for those after it, up to the next
 */
export function chains(script: string): NftChain[] {
  return [...script.matchAll(/((?: *#.*\n)*) *chain (\S+) \{\n([\s\S]*?)\n *\}\n/g)].map(
    ([, comment = "", name = "", body = ""]) => {
      const lines = body.split("\n").map((line) => line.trim());
      const hook = lines.find((line) => line.startsWith("type "));
      const rules: NftRule[] = [];
      let ofRule = "";
      for (const line of lines) {
        if (line.startsWith("# ")) ofRule = line.slice(2);
        else if (line !== "" && line !== hook) rules.push({ text: line, comment: ofRule });
      }
      const words = comment.split("\n").map((line) => line.replace(/^ *# /, ""));
      return { name, ...(hook !== undefined && { hook }), comment: words.join(" ").trim(), rules };
    },
  );
}

/** One transaction. */
export function nftScript(input: string): Command {
  return { file: "nft", args: ["-f", "-"], input };
}

/** The table as a script for `nft -f`: what it defines is added to what is there. */
export function renderTable(table: NftTable): string {
  return [
    `table inet ${table.name} {`,
    ...(table.dormant ? ["  flags dormant"] : []),
    `  comment "${table.comment}"`,
    ...(table.counters ?? []).flatMap((name) => ["", `  counter ${name} {`, "  }"]),
    ...table.sets.flatMap(renderSet),
    ...(table.flowtables ?? []).flatMap(renderFlowtable),
    ...table.chains.flatMap(renderChain),
    "}",
    "",
  ].join("\n");
}

/**
 * The comment that a rule carries in the kernel. It ends in a digest of the rule's text: nft prints rules in another
 * spelling than it reads, and in another one in each version, but it keeps comments as they are.
 */
export function kernelComment({ text, comment }: NftRule): string {
  return `${comment} ~${createHash("sha256").update(text).digest("hex").slice(0, 6)}`;
}

function renderSet(set: NftSet): string[] {
  return [
    "",
    `  ${set.kind} ${set.name} {`,
    `    ${set.typeof ? "typeof" : "type"} ${set.type}`,
    ...(set.interval ? ["    flags interval"] : []),
    `    comment "${set.comment}"`,
    ...(set.elements.length > 0 ? [`    elements = { ${set.elements.join(",\n                 ")} }`] : []),
    "  }",
  ];
}

function renderFlowtable({ name, comment, devices }: NftFlowtable): string[] {
  return [
    "",
    `  # ${comment}`,
    `  flowtable ${name} {`,
    "    hook ingress priority filter",
    `    devices = { ${devices.map((device) => `"${device}"`).join(", ")} }`,
    "  }",
  ];
}

function renderChain(chain: NftChain): string[] {
  return [
    "",
    `  # ${chain.comment}`,
    `  chain ${chain.name} {`,
    ...(chain.hook === undefined ? [] : [`    ${chain.hook}`]),
    ...chain.rules.map((rule) => `    ${rule.text} comment "${kernelComment(rule)}"`),
    "  }",
  ];
}
