import { cp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pauseProgram } from "@egress-nat/tools/images/pause-image";
import { cachedFolder, contentHash } from "@egress-nat/tools/system/cache";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { goModule, runGo } from "@egress-nat/tools/system/go-module";
import { execa } from "execa";

const MODULE = "github.com/cybozu-go/coil/v2";
const PATCHES = join(import.meta.dirname, "patches");
const DOCKERFILE = join(import.meta.dirname, "image/Dockerfile");

/** The HTTP server of its pods, in the folder of their image. It runs one on a node, too. */
export const ECHOTEST = "echotest";

/** coil's end-to-end suite, built. */
export interface CoilSuite {
  /** The folder that it has to run in, because its manifests are there. */
  readonly folder: string;
  readonly program: string;
  /** The folder with the Dockerfile of its pods' image, and what that copies: {@link ECHOTEST}, and a pause. */
  readonly image: string;
}

/**
 * Builds coil's own end-to-end suite from its Go module, with the patches that stand beside this file: each is a
 * difference that docs/coil.md names.
 *
 * @throws ToolError `go-failed`
 */
export async function coilSuite(): Promise<CoilSuite> {
  await needCommands(["patch"]);
  const { folder: source, version } = await goModule(import.meta.dirname, MODULE);
  const patches = (await readdir(PATCHES)).toSorted().map((file) => join(PATCHES, file));
  const pause = await pauseProgram();
  const key = `${version}-${await contentHash({ files: [...patches, DOCKERFILE, pause] })}`;
  const folder = await cachedFolder("coil-suite", key, async (draft) => {
    const module = join(draft, "module");
    await cp(source, module, { recursive: true });
    // Those of the module cache are for reading only.
    await execa("chmod", ["-R", "u+w", module]);
    for (const file of patches) await execa("patch", ["--strip=1", `--input=${file}`], { cwd: module });
    await runGo(["test", "-c", "-o", join(draft, "suite"), "./e2e"], module);
    await runGo(["build", "-o", join(draft, "image", ECHOTEST), "./e2e/echo-server"], module);
    await cp(DOCKERFILE, join(draft, "image/Dockerfile"));
    await cp(pause, join(draft, "image/pause"));
    await cp(join(module, "e2e/manifests"), join(draft, "manifests"), { recursive: true });
    await rm(module, { recursive: true });
  });
  return { folder, program: join(folder, "suite"), image: join(folder, "image") };
}
