import { access, mkdir, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ToolError } from "@egress-nat/tools/system/tool-error";

const MOUNT = "/sys/fs/cgroup";

/** Processes with a limit of memory, as a container has one: cgroups(7), either version. */
export class MemoryCgroup implements AsyncDisposable {
  /** A process joins by its PID in this file. */
  readonly procs: string;
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
    this.procs = join(folder, "cgroup.procs");
  }

  /**
   * @param name unique on this machine
   * @param limit bytes
   * @throws ToolError no-memory-cgroup
   */
  static async create(name: string, limit: number): Promise<MemoryCgroup> {
    const isUnified = await access(join(MOUNT, "cgroup.controllers")).then(
      () => true,
      () => false,
    );
    const folder = isUnified ? join(MOUNT, name) : join(MOUNT, "memory", name);
    const unavailable = (cause: unknown) =>
      new ToolError(
        "no-memory-cgroup",
        `${folder} cannot be made a cgroup with a memory limit: run as root where ${MOUNT} can be written and has the memory controller`,
        { cause },
      );
    await mkdir(folder).catch((cause: unknown) => {
      throw unavailable(cause);
    });
    const limitFile = join(folder, isUnified ? "memory.max" : "memory.limit_in_bytes");
    await writeFile(limitFile, String(limit)).catch(async (cause: unknown) => {
      await rmdir(folder);
      throw unavailable(cause);
    });
    return new MemoryCgroup(folder);
  }

  /** Once its processes have ended. */
  async [Symbol.asyncDispose](): Promise<void> {
    await rmdir(this.#folder);
  }
}
