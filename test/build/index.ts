import { join } from "node:path";
import { compilePlugin } from "@egress-nat/client-sidecar";
import { CNI_PLUGIN } from "@egress-nat/crds";
import { bundleProgram } from "./bundle.ts";
import { bringUpToDate } from "./up-to-date.ts";

const ROOT = join(import.meta.dirname, "../..");

const LIBRARIES = ["crds", "founat", "kube", "program"];

const PROGRAMS = [
  { workspace: "operator", entry: "src/main.ts" },
  { workspace: "egress-pod", entry: "src/main.ts" },
  { workspace: "client-sidecar", entry: "src/main.ts" },
];

/** The CNI plugin as it is put on nodes. */
export const PLUGIN_EXECUTABLE = join(ROOT, "client-sidecar/dist/plugin", CNI_PLUGIN);

/**
 * Makes `dist/bundle` of every program, and the CNI plugin, as far as their sources have changed.
 *
 * @returns what was built, empty when all was up to date
 */
export async function buildPrograms(): Promise<readonly string[]> {
  const steps = [
    ...PROGRAMS.map(({ workspace, entry }) => ({
      name: workspace,
      stamp: join(ROOT, workspace, "dist/bundle.stamp"),
      inputs: [...LIBRARIES.concat(workspace).map((name) => join(ROOT, name, "src")), ...toolchain()],
      outputs: [join(ROOT, workspace, "dist/bundle/main.js")],
      run: () => bundleProgram(join(ROOT, workspace, entry), join(ROOT, workspace, "dist/bundle")),
    })),
    {
      name: "CNI plugin",
      stamp: join(ROOT, "client-sidecar/dist/plugin.stamp"),
      inputs: [
        join(ROOT, "client-sidecar/src/cni"),
        join(ROOT, "client-sidecar/src/state"),
        join(ROOT, "crds/src/names.ts"),
        ...toolchain(),
      ],
      outputs: [PLUGIN_EXECUTABLE],
      run: () => compilePlugin({ outfile: PLUGIN_EXECUTABLE }),
    },
  ];
  const ran = await Promise.all(steps.map(bringUpToDate));
  return steps.filter((_, index) => ran[index]).map(({ name }) => name);
}

function toolchain(): string[] {
  return [join(ROOT, "package-lock.json"), import.meta.dirname];
}
