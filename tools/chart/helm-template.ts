import { execa } from "execa";
import { helmBinary } from "../system/client-tools.ts";
import { CHART } from "./chart.ts";

/** Of the release, unless somebody wants another one. */
export const NAMESPACE = "egress-nat";

interface HelmTemplateOptions {
  readonly values?: object;
  readonly namespace?: string;
  /** Options of `helm template`. */
  readonly flags?: readonly string[];
  /** Throw when helm fails: the default. */
  readonly reject?: boolean;
}

/** Runs `helm template` on the chart. */
export async function helmTemplate(options: HelmTemplateOptions) {
  const { values = {}, namespace = NAMESPACE, flags = [], reject = true } = options;
  const args = ["template", "egress-nat", CHART, "--namespace", namespace, "--values", "-", ...flags];
  return execa(await helmBinary(), args, { input: JSON.stringify(values), reject });
}
