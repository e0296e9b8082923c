import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compilePlugin } from "../cni/build.ts";

/** The compiled plugin, run as a container runtime runs it; but that the node's state is in a folder of the test's. */
export class CompiledPlugin {
  readonly #folder = mkdtempSync(join(tmpdir(), "egress-nat-plugin-"));
  readonly file = join(this.#folder, "egress-nat");

  static async compile(): Promise<CompiledPlugin> {
    const plugin = new CompiledPlugin();
    await compilePlugin({
      outfile: plugin.file,
      entry: join(import.meta.dirname, "plugin-under-test.ts"),
    });
    return plugin;
  }

  /**
   * @param folder of the node's state
   * @param environment as the CNI specification names it
   */
  run(
    folder: string,
    environment: Readonly<Record<string, string>>,
    stdin: string,
  ): Promise<{ readonly exitCode: number; readonly result: unknown }> {
    return new Promise((resolve) => {
      const env = { ...environment, FOLDER: folder };
      const child = execFile(this.file, { env }, (error, stdout) =>
        resolve({
          exitCode: error === null ? 0 : 1,
          result: stdout === "" ? undefined : JSON.parse(stdout),
        }),
      );
      child.stdin?.end(stdin);
    });
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }
}
