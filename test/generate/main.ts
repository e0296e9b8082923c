import { generateCommand } from "@egress-nat/tools/generate/command";
import { runCommand } from "@egress-nat/tools/system/run-command";
import { GENERATORS } from "./generators.ts";

const program = generateCommand(GENERATORS).description(
  `Writes crds/crds, the Helm chart's copy of it and docs/api.md, from the zod schemas in crds/src, the plain YAML in \
config/kustomize and the table of values in the chart's README, from the chart, the tables of docs/cni.md, from the \
cases in test/cni, and docs/slo.md, from what was measured in docs/slo.`,
);

await runCommand(program);
