import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { execa } from "execa";

/** The network namespace of a pod, which has an interface eth0. */
export const POD_NETNS = "/run/netns/pod";

/** It ends with its input, and with it all the namespaces. */
const SETUP = `
  set -e
  mount --bind "$1/run" /run
  mount --bind "$1/lib" /var/lib
  ip link set lo up
  ip netns add pod
  ip -n pod link add eth0 type bridge
  echo ready
  exec cat`;

/** How a command in a sandbox ended. */
export interface Ended {
  readonly exitCode: number | undefined;
  readonly stdout: string;
}

/**
 * A node for plugins, in namespaces of its own: network, mounts and users, so that it needs no root. Its /run and
 * /var/lib are folders of the test.
 */
export class Sandbox {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #folder: string;

  private constructor(process: ChildProcessWithoutNullStreams, folder: string) {
    this.#process = process;
    this.#folder = folder;
  }

  static async start(): Promise<Sandbox> {
    await needCommands(["ip", "nsenter", "python3"]);
    const folder = await mkdtemp(join(tmpdir(), "egress-nat-cni-"));
    for (const name of ["run", "lib"]) await mkdir(join(folder, name));
    const command = ["--map-root-user", "--mount", "--net", "sh", "-c", SETUP, "sh", folder];
    const sandbox = new Sandbox(spawn("unshare", command), folder);
    const { stdout, stderr } = sandbox.#process;
    const [ready] = await Promise.race([once(stdout, "data"), once(sandbox.#process, "close")]);
    if (String(ready) === "ready\n") return sandbox;
    await sandbox.end();
    throw new Error(`namespaces for CNI plugins cannot be made: ${stderr.read()}`);
  }

  /** The test's own path of a file below the sandbox's /run or /var/lib. */
  path(inside: `/run/${string}` | `/var/lib/${string}`): string {
    return join(this.#folder, inside.replace(/^\/var/, ""));
  }

  /** Runs a command to its end, whatever its exit code. */
  async run(
    command: readonly string[],
    options: { readonly input?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<Ended> {
    const { input = "", env = {} } = options;
    const namespaces = ["--user", "--mount", "--net", "--preserve-credentials"];
    const args = ["--target", String(this.#process.pid), ...namespaces, "--", ...command];
    const { exitCode, stdout } = await execa("nsenter", args, {
      ...{ input, env: { PATH: process.env.PATH, ...env }, extendEnv: false, reject: false },
      stripFinalNewline: false,
    });
    return { exitCode, stdout };
  }

  async end(): Promise<void> {
    const { exitCode, stdin } = this.#process;
    if (exitCode === null) {
      stdin.end();
      await once(this.#process, "close");
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}
