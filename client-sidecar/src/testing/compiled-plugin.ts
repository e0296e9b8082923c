import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundlePlugin, compilePlugin } from "@egress-nat/tools/build/plugin";
import { testedProcessor } from "@egress-nat/tools/build/tested-processor";

/** The compiled plugin, run as a container runtime runs it; but that the node's state is in a folder of the test's. */
export class CompiledPlugin {
  readonly #folder: string;
  readonly #command: readonly string[];

  private constructor(folder: string, command: readonly string[]) {
    this.#folder = folder;
    this.#command = command;
  }

  static async compile(): Promise<CompiledPlugin> {
    const folder = mkdtempSync(join(tmpdir(), "egress-nat-plugin-"));
    const file = join(folder, "egress-nat");
    const { architecture, emulator } = await testedProcessor();
    const script = await bundlePlugin(join(import.meta.dirname, "plugin-under-test.ts"));
    await compilePlugin(script, file, architecture);
    return new CompiledPlugin(folder, [...emulator, file]);
  }

  /** What starts it: an executable, and what to pass to that. */
  get command(): readonly [string, ...string[]] {
    const [file = "", ...args] = this.#command;
    return [file, ...args];
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
      const [file, ...args] = this.command;
      const child = execFile(file, args, { env }, (error, stdout) =>
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
