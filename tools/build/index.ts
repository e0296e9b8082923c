import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CNI_PLUGIN } from "@egress-nat/crds";
import { CACHE_FOLDER } from "../system/cache.ts";
import { withLock } from "../system/lock.ts";
import { bundleProgram } from "./bundle.ts";
import { thirdPartyNotices } from "./notices.ts";
import { bundlePlugin, compilePlugin } from "./plugin.ts";
import { type Architecture, Engine, HOST_ARCHITECTURE } from "./quickjs/engine.ts";
import { bringUpToDate } from "./up-to-date.ts";

const ROOT = join(import.meta.dirname, "../..");

const LIBRARIES = ["addresses", "crds", "founat", "kube", "program"];

const PROGRAMS = [
  { workspace: "operator", entry: "src/main.ts" },
  { workspace: "egress-pod", entry: "src/main.ts" },
  { workspace: "client-sidecar", entry: "src/main.ts" },
];

/** The CNI plugin as it is put on nodes of one kind of processor. */
function pluginExecutable(architecture: Architecture): string {
  return join(ROOT, "client-sidecar/dist/plugin", architecture, CNI_PLUGIN);
}

/** The CNI plugin for this machine. */
export const PLUGIN_EXECUTABLE = pluginExecutable(HOST_ARCHITECTURE);

/**
 * Makes `dist/bundle` of every program, and the CNI plugin, as far as their sources have changed.
 *
 * @param architectures of the nodes that the plugin is for
 * @returns what was built, empty when all was up to date
 */
export async function buildPrograms(
  architectures: readonly Architecture[] = [HOST_ARCHITECTURE],
): Promise<readonly string[]> {
  const steps = [
    ...PROGRAMS.map(({ workspace, entry }) => ({
      name: workspace,
      stamp: join(ROOT, workspace, "dist/bundle.stamp"),
      inputs: [...LIBRARIES.concat(workspace).map((name) => join(ROOT, name, "src")), ...toolchain()],
      outputs: [join(ROOT, workspace, "dist/bundle/main.js")],
      run: () => bundleProgram(join(ROOT, workspace, entry), join(ROOT, workspace, "dist/bundle")),
    })),
    ...architectures.map((architecture) => ({
      name: `CNI plugin for ${architecture}`,
      stamp: join(ROOT, `client-sidecar/dist/plugin-${architecture}.stamp`),
      inputs: [
        ...["cni", "client", "records"].map((folder) => join(ROOT, "client-sidecar/src", folder)),
        join(ROOT, "crds/src/names.ts"),
        ...toolchain(),
      ],
      outputs: [pluginExecutable(architecture), noticesBeside(pluginExecutable(architecture))],
      run: () => buildPlugin(architecture),
    })),
  ];
  // Stages of the tests that run side by side need the same.
  await mkdir(CACHE_FOLDER, { recursive: true });
  // None goes on when the lock is free again.
  const ran = await withLock(join(CACHE_FOLDER, ".build.lock"), () =>
    Promise.allSettled(steps.map(bringUpToDate)),
  );
  const failed = ran.find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
  return steps
    .filter((_, index) => ran[index]?.status === "fulfilled" && ran[index].value)
    .map(({ name }) => name);
}

async function buildPlugin(architecture: Architecture): Promise<void> {
  const executable = pluginExecutable(architecture);
  const script = await bundlePlugin();
  await compilePlugin(script, executable, architecture);
  const [packages, engine] = [await thirdPartyNotices(ROOT, script.files), await Engine.for(architecture)];
  await writeFile(noticesBeside(executable), packages + (await engine.notices()));
}

function noticesBeside(executable: string): string {
  return join(dirname(executable), "THIRD_PARTY_NOTICES");
}

function toolchain(): string[] {
  return [join(ROOT, "package-lock.json"), import.meta.dirname];
}
