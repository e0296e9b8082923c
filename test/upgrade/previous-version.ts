import { mkdir, mkdtemp, readdir, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImageTarball } from "@egress-nat/tools/images";
import { execa } from "execa";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");
/** Where npm links the workspaces. */
const SCOPE = "@egress-nat";

/** A program that prints them as JSON. */
const PRINT_IMAGES =
  'import { imageTarballs } from "./tools/images/index.ts"; console.log(JSON.stringify(await imageTarballs()));';

const Tarballs = z.array(z.object({ name: z.string(), file: z.string(), digest: z.string() }));

/** The product as it was at another commit, built with the dependencies that it had. */
export class PreviousVersion implements AsyncDisposable {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** The commit before this checkout: the last one where the checkout has changes. */
  static async checkOut(): Promise<PreviousVersion> {
    const git = (...args: readonly string[]) => execa("git", ["-C", ROOT, ...args]);
    const { stdout: changes } = await git("status", "--porcelain");
    const revision = changes === "" ? "HEAD~1" : "HEAD";
    const { failed } = await execa("git", ["-C", ROOT, "rev-parse", "--verify", revision], { reject: false });
    if (failed) {
      throw new Error(
        "an upgrade needs the version before this one: get the history with git fetch --unshallow",
      );
    }
    const folder = await mkdtemp(join(tmpdir(), "egress-nat-previous-"));
    const archive = join(folder, ".tar");
    await git("archive", "--output", archive, revision);
    await execa("tar", ["-x", "-f", archive, "-C", folder]);
    return new PreviousVersion(folder);
  }

  get chart(): string {
    return join(this.#folder, "config/helm/egress-nat");
  }

  /** As `imageTarballs()` of that commit makes them. */
  async images(): Promise<readonly ImageTarball[]> {
    const [theirs, ours] = await Promise.all(
      [this.#folder, ROOT].map((root) => readFile(join(root, "package-lock.json"), "utf8")),
    );
    if (theirs === ours) await this.#linkDependencies();
    else await execa("npm", ["ci", "--ignore-scripts"], { cwd: this.#folder });
    const program = ["--input-type=module", "--eval", PRINT_IMAGES];
    const { stdout } = await execa("node", ["--conditions=source", ...program], {
      cwd: this.#folder,
      preferLocal: true,
    });
    return Tarballs.parse(JSON.parse(stdout.split("\n").at(-1) ?? ""));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true });
  }

  /** All of this checkout but its own workspaces, which are the other commit's. */
  async #linkDependencies(): Promise<void> {
    const theirs = join(this.#folder, "node_modules");
    await mkdir(join(theirs, SCOPE), { recursive: true });
    const ours = join(ROOT, "node_modules");
    const others = (await readdir(ours)).filter((name) => name !== SCOPE && name !== ".cache");
    await Promise.all(others.map((name) => symlink(join(ours, name), join(theirs, name))));
    const workspaces = await readdir(join(ours, SCOPE));
    await Promise.all(workspaces.map((name) => symlink(join(this.#folder, name), join(theirs, SCOPE, name))));
  }
}
