import { readFile } from "node:fs/promises";
import { join, parse } from "node:path";
import { execa } from "execa";
import { cachedFolder, contentHash, filesIn } from "./cache.ts";
import { runGo } from "./go-module.ts";
import { ToolError } from "./tool-error.ts";

const GO_VERSION = { major: 1, minor: 25 };

export interface GoProgram {
  readonly name: string;
  /** Folder with go.mod, go.sum and the program's main package. */
  readonly folder: string;
  /** In the place of go.mod; its go.sum has the same name, too (`go help build`, -modfile). */
  readonly modFile?: string;
  /** The required module whose version names the program, such as k8s.io/kubernetes. */
  readonly versionOf?: string;
  /** Linker flags, given that version without its "v". */
  readonly linkerFlags?: (version: string) => readonly string[];
}

/**
 * Builds a static executable, once per content of its folder.
 *
 * @returns the path of the executable in the cache
 * @throws ToolError `go-missing`, `go-too-old`, `go-failed`
 */
export async function goProgram(program: GoProgram): Promise<string> {
  return join(await builtFolder(program, (folder) => ["-o", join(folder, program.name), "."]), program.name);
}

/**
 * As {@link goProgram}, with the tools that go.mod names: main packages of other modules.
 *
 * @returns the folder of the executables, each named for the last part of its package's path
 */
export async function goProgramAndTools(program: GoProgram): Promise<string> {
  return builtFolder(program, (folder) => ["-o", `${folder}/`, ".", "tool"]);
}

/** @param target arguments of `go build`: where to, and which packages */
async function builtFolder(
  program: GoProgram,
  target: (folder: string) => readonly string[],
): Promise<string> {
  const modFile = program.modFile ?? "go.mod";
  const goMod = await readFile(join(program.folder, modFile), "utf8");
  const version = program.versionOf === undefined ? "0" : requiredVersion(goMod, program.versionOf);
  const linkerFlags = ["-s", "-w", ...(program.linkerFlags?.(version) ?? [])].join(" ");
  const files = (await filesIn(program.folder)).filter((file) => isOf(modFile, file));
  const hash = await contentHash({ texts: [linkerFlags], files });
  return cachedFolder(program.name, `${version}-${hash}`, async (draft) => {
    await checkGo();
    // The linker leaves debug information out (-w); not to write it at all takes a tenth off the compiler's time.
    const compilerFlags = "-gcflags=all=-dwarf=false";
    const flags = ["-mod=readonly", `-modfile=${modFile}`, compilerFlags, `-ldflags=${linkerFlags}`];
    await runGo(["build", ...flags, ...target(draft)], program.folder);
  });
}

/** Whether a program of that go.mod is made from a file. */
function isOf(modFile: string, file: string): boolean {
  const { name, ext } = parse(file);
  return ![".mod", ".sum"].includes(ext) || name === parse(modFile).name;
}

/**
 * @param goMod the text of a go.mod
 * @param module the path of a module that it requires
 * @returns its version without the leading "v"
 */
export function requiredVersion(goMod: string, module: string): string {
  for (const line of goMod.split("\n")) {
    const [path, version] = line
      .replace(/^require/, "")
      .trim()
      .split(/\s+/);
    if (path === module && version?.startsWith("v")) return version.slice(1);
  }
  throw new ToolError("go-module-missing", `go.mod does not require ${module}: run go get ${module}@latest`);
}

async function checkGo(): Promise<void> {
  const { stdout, exitCode } = await execa("go", ["env", "GOVERSION"], { reject: false });
  const wanted = `Go ${GO_VERSION.major}.${GO_VERSION.minor} or newer is needed; see https://go.dev/doc/install`;
  if (exitCode !== 0) throw new ToolError("go-missing", `the command go was not found. ${wanted}`);
  const [major = 0, minor = 0] = stdout.replace(/^go/, "").split(".").map(Number);
  if (major < GO_VERSION.major || (major === GO_VERSION.major && minor < GO_VERSION.minor)) {
    throw new ToolError("go-too-old", `go is ${stdout}. ${wanted}`);
  }
}
