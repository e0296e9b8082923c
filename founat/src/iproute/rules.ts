import type { Family } from "@egress-nat/addresses";
import { FOUNAT_PROTOCOL } from "./routes.ts";
import type { NetworkState, RuleState } from "./state.ts";

export interface Rule {
  readonly family: Family;
  readonly preference: number;
  /** For instance `to 10.0.0.0/8`, `fwmark 0x1/0xff`, `iif eth0`; empty: every packet. */
  readonly selector: string;
  /** For instance `lookup 117`; tables by number. */
  readonly action: string;
}

export const addRuleCommand = (rule: Rule): string => ruleCommand("add", rule);
export const deleteRuleCommand = (rule: Rule): string => ruleCommand("del", rule);

function ruleCommand(verb: "add" | "del", { preference, selector, action }: Rule): string {
  const words = ["rule", verb, "pref", preference, selector, action, "protocol", FOUNAT_PROTOCOL];
  return words.filter(Boolean).join(" ");
}

/** The wanted rules that the kernel lacks. */
export function missingRules(wanted: readonly Rule[], state: NetworkState): Rule[] {
  return wanted.filter((rule) => !state.rules.some((actual) => sameRule(rule, actual)));
}

/** The kernel's rules that are founat's and not wanted (any more). */
export function staleRules(wanted: readonly Rule[], state: NetworkState): Rule[] {
  return state.rules.filter(
    (actual) => actual.protocol === FOUNAT_PROTOCOL && !wanted.some((rule) => sameRule(rule, actual)),
  );
}

function sameRule(rule: Rule, actual: RuleState): boolean {
  return (
    actual.protocol === FOUNAT_PROTOCOL &&
    rule.family === actual.family &&
    rule.preference === actual.preference &&
    rule.selector === actual.selector &&
    rule.action === actual.action
  );
}
