import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { cachedFolder, contentHash, filesIn } from "../../system/cache.ts";
import { needCommands } from "../../system/debian-packages.ts";
import { ToolError } from "../../system/tool-error.ts";

/** Processors that nodes have, by Go's names, which images use, too. */
export const ARCHITECTURES = ["amd64", "arm64"] as const;
export type Architecture = (typeof ARCHITECTURES)[number];

interface Toolchain {
  readonly cc: "gcc" | "aarch64-linux-gnu-gcc" | "x86_64-linux-gnu-gcc";
  /** The static libc that the compiler links, and its Debian package. */
  readonly libc: Readonly<Record<string, string>>;
}

const NATIVE: Readonly<Record<Architecture, Toolchain>> = {
  amd64: { cc: "gcc", libc: { "/usr/lib/x86_64-linux-gnu/libc.a": "libc6-dev" } },
  arm64: { cc: "gcc", libc: { "/usr/lib/aarch64-linux-gnu/libc.a": "libc6-dev" } },
};

const CROSS: Readonly<Record<Architecture, Toolchain>> = {
  amd64: {
    cc: "x86_64-linux-gnu-gcc",
    libc: { "/usr/x86_64-linux-gnu/lib/libc.a": "libc6-dev-amd64-cross" },
  },
  arm64: {
    cc: "aarch64-linux-gnu-gcc",
    libc: { "/usr/aarch64-linux-gnu/lib/libc.a": "libc6-dev-arm64-cross" },
  },
};

/** The processor of this machine. */
export const HOST_ARCHITECTURE: Architecture = process.arch === "arm64" ? "arm64" : "amd64";

const SOURCES = ["quickjs", "libregexp", "libunicode", "dtoa"];

const COMPILER_FLAGS = [
  "-O2",
  "-ffunction-sections",
  "-fdata-sections",
  "-D_GNU_SOURCE",
  "-DQUICKJS_NG_BUILD",
];

/** What Debian's compiler links with, and its licences. */
const NOTICES = {
  "/usr/share/doc/libc6-dev/copyright": "libc6-dev",
  "/usr/share/common-licenses/LGPL-2.1": "base-files",
} as const;

const LIBC_NOTICE = `The executable is linked with the GNU C Library statically, as Debian distributes it (source package glibc). With another
version of that library it can be linked by the scripts of this project, whose source is complete: npm run build.
`;

/** Debian's own, whatever other Python is in the PATH. */
const PIP = "/usr/bin/pip3";
const SETUPTOOLS = { "/usr/lib/python3/dist-packages/setuptools/__init__.py": "python3-setuptools" };

const REQUIREMENTS = join(import.meta.dirname, "requirements.txt");

/** QuickJS-NG, compiled for one kind of processor. */
export class Engine {
  /** Another one for another version. */
  readonly folder: string;
  readonly #cc: string;

  private constructor(folder: string, cc: string) {
    this.folder = folder;
    this.#cc = cc;
  }

  /**
   * Downloads and compiles it, once per version.
   *
   * @throws ToolError `packages-missing`, `quickjs-failed`
   */
  static async for(architecture: Architecture): Promise<Engine> {
    const { cc, libc } = (architecture === HOST_ARCHITECTURE ? NATIVE : CROSS)[architecture];
    await needCommands([cc, "pip3"], { ...libc, ...NOTICES, ...SETUPTOOLS });
    const compiler = await run(cc, ["--version"]);
    const texts = [compiler, ...COMPILER_FLAGS, ...SOURCES];
    const key = await contentHash({ texts, files: [REQUIREMENTS, ...Object.keys(libc)] });
    const folder = await cachedFolder(`quickjs/${architecture}`, key, async (draft) => {
      await download(draft);
      await Promise.all(
        SOURCES.map((name) =>
          run(cc, [...COMPILER_FLAGS, "-c", `${name}.c`, "-o", `${name}.o`], { cwd: join(draft, "sources") }),
        ),
      );
    });
    return new Engine(folder, cc);
  }

  /** The licences of what {@link link} puts into an executable beside the files that it is given. */
  async notices(): Promise<string> {
    const sources = await filesIn(join(this.folder, "sources"));
    const texts = await Promise.all(
      sources.filter((file) => !file.endsWith(".o")).map((file) => readFile(file, "utf8")),
    );
    const engine = [...new Set(texts.flatMap(licenceIn))].join("\n");
    const libc = await Promise.all(Object.keys(NOTICES).map((file) => readFile(file, "utf8")));
    return `\n==== QuickJS-NG, MIT, and Unicode\n\n${engine}\n==== GNU C Library, LGPL-2.1-or-later\n\n${[LIBC_NOTICE, ...libc].join("\n")}`;
  }

  /**
   * Compiles C files and links them with the engine.
   *
   * @param files C sources
   * @param executable to write: static, so that it runs with any libc or none
   */
  async link(files: readonly string[], executable: string): Promise<void> {
    const sources = join(this.folder, "sources");
    const objects = SOURCES.map((name) => join(sources, `${name}.o`));
    const flags = [...COMPILER_FLAGS, "-Wall", "-static", "-s", "-Wl,--gc-sections", `-I${sources}`];
    await run(this.#cc, [...flags, ...files, ...objects, "-lm", "-lpthread", "-o", executable]);
  }
}

/** The comments of a source that speak of copyright. */
function licenceIn(source: string): readonly string[] {
  const comments = source.match(/\/\*.*?\*\//gs) ?? [];
  return comments
    .filter((comment) => /copyright/i.test(comment))
    .map((comment) => comment.replaceAll(/^ *(\/\*+|\*+\/|\*) ?|\*\/$/gm, "").trim())
    .map((text) => `${text}\n`);
}

async function download(draft: string): Promise<void> {
  const package_ = join(draft, "package");
  await mkdir(package_);
  // Its metadata is made by Debian's setuptools: nothing is executed whose hash is not known.
  const options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"];
  await run(PIP, [
    "download",
    ...options,
    "--no-binary=:all:",
    "--require-hashes",
    `--requirement=${REQUIREMENTS}`,
    `--dest=${package_}`,
  ]);
  const [archive = ""] = await readdir(package_);
  const sources = join(draft, "sources");
  await mkdir(sources);
  await run("tar", [
    ...["--extract", `--file=${join(package_, archive)}`, `--directory=${sources}`],
    ...["--strip-components=2", "--wildcards", "*/upstream-quickjs/*"],
  ]);
  await rm(package_, { recursive: true });
}

/** @throws ToolError `quickjs-failed` */
export async function run(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string; readonly input?: string } = {},
): Promise<string> {
  const result = await execa(command, args, { ...options, reject: false });
  if (!result.failed) return result.stdout;
  throw new ToolError("quickjs-failed", `${command} ${args.join(" ")} failed:\n${result.stderr}`);
}
