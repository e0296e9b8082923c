/** The tables of docs/cni.md, made of the cases that the tests run. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { GeneratedFile } from "@egress-nat/crds/generate";
import { markdownTable, replaceBetweenMarks } from "@egress-nat/tools/generate/markdown";
import { type Answer, conforms, type Expected, PROTOCOL_CASES } from "./cases/index.ts";
import { CHAINS, positions, withEgressNat } from "./chains.ts";
import { CLIENT_CASES } from "./client-cases.ts";
import type { RuntimeCommand } from "./scenario.ts";
import { VERSION_CASES, type VersionCase } from "./versions.ts";

const PATH = "docs/cni.md";
const ROOT = join(import.meta.dirname, "../..");

const COMMANDS: readonly RuntimeCommand[] = ["ADD", "CHECK", "DEL", "GC", "STATUS"];

/** By the names of their marks. */
const TABLES: Readonly<Record<string, () => string>> = {
  "matrix of calls": callsTable,
  "matrix of versions": versionsTable,
  "matrix of clients": clientsTable,
  "matrix of chains": chainsTable,
};

/** @throws Error when the document lacks the marks of a table */
export async function cniMatrix(): Promise<readonly GeneratedFile[]> {
  let text = await readFile(join(ROOT, PATH), "utf8");
  for (const [name, table] of Object.entries(TABLES)) {
    text = replaceBetweenMarks(text, name, table());
  }
  return [{ path: PATH, text }];
}

function callsTable(): string {
  return markdownTable([
    ["case", "commands", "section", "specification", "egress-nat", "tuning", "why"],
    ...PROTOCOL_CASES.map(({ title, commands, section, expected, answer, control, reason = "" }) => [
      ...[title, commands.join(", "), section, inWords(expected), marked(answer, expected), control, reason],
    ]),
  ]);
}

function versionsTable(): string {
  return markdownTable([
    ["cniVersion", ...COMMANDS, "tuning"],
    ...VERSION_CASES.map((row) => [
      ...[row.version, ...COMMANDS.map((command) => row.answers[command]), otherwise(row)],
    ]),
  ]);
}

function otherwise({ answers, control }: VersionCase): string {
  const different = COMMANDS.filter((command) => control[command] !== answers[command]);
  return different.map((command) => `${command} ${control[command]}`).join(", ") || "the same";
}

function clientsTable(): string {
  return markdownTable([
    ["case", "command", "section", "specification", "egress-nat", "the agent hears", "why"],
    ...CLIENT_CASES.map(({ title, command, section, expected, answer, asks, reason = "" }) => [
      ...[title, command, section, inWords(expected), marked(answer, expected)],
      ...[asks.map((request) => request.split(" ")[0]).join(", ") || "nothing", reason],
    ]),
  ]);
}

function chainsTable(): string {
  return markdownTable([
    ["chain", "with egress-nat"],
    ...CHAINS.flatMap((chain) => {
      const places = positions(chain).map((position) => withEgressNat(chain, position));
      return [
        [chain.name, places.map(({ plugins }) => plugins.map(({ type }) => type).join(", ")).join("; ")],
      ];
    }),
  ]);
}

function inWords(expected: Expected): string {
  return expected === "open" ? "says nothing" : expected;
}

function marked(answer: Answer, expected: Expected): string {
  return conforms(answer, expected) ? answer : `**${answer}**`;
}
