import { execa } from "execa";
import type { z } from "zod";

/** A Kubernetes object as the tests write it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

const TIMEOUT_MS = 120_000;

/** kubectl as a user runs it; every method throws with kubectl's own words when it fails. */
export class Kubectl {
  readonly #command: readonly string[];

  /** @param command kubectl with the arguments that name the cluster, and what must run before it, such as nsenter */
  constructor(command: readonly string[]) {
    this.#command = command;
  }

  /** The whole command that runs kubectl with these arguments. */
  command(args: readonly string[]): readonly string[] {
    return [...this.#command, ...args];
  }

  /** Runs kubectl and returns what it printed. */
  async run(args: readonly string[], options: { input?: string; timeoutMs?: number } = {}): Promise<string> {
    const [file = "", ...rest] = this.command(args);
    const { stdout } = await execa(file, rest, {
      timeout: options.timeoutMs ?? TIMEOUT_MS,
      ...(options.input === undefined ? { stdin: "ignore" as const } : { input: options.input }),
    });
    return stdout;
  }

  /** Runs kubectl expecting a refusal, and returns its complaint. */
  async refused(args: readonly string[], options: { input?: string } = {}): Promise<string> {
    const answer = await this.run(args, options).then(
      (stdout) => ({ stdout }),
      (error: unknown) => ({ error }),
    );
    if ("stdout" in answer) throw new Error(`kubectl ${args.join(" ")} was not refused: ${answer.stdout}`);
    return String(answer.error);
  }

  async apply(...objects: readonly Manifest[]): Promise<void> {
    await this.run(["apply", "-f", "-"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
    });
  }

  /** Deletes objects, gone ones too, and by default waits until they are gone. */
  async delete(objects: readonly Manifest[], options: { wait?: boolean } = {}): Promise<void> {
    await this.run(["delete", "--ignore-not-found", `--wait=${options.wait ?? true}`, "-f", "-"], {
      input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
    });
  }

  /** One object, or a list of them, in the shape that the test reads. */
  async get<T>(schema: z.ZodType<T>, ...args: readonly string[]): Promise<T> {
    return schema.parse(JSON.parse(await this.run(["get", "-o", "json", ...args])));
  }

  /** Waits for a condition, as `kubectl wait --for` does. */
  async wait(what: readonly string[], condition: string, timeoutMs = TIMEOUT_MS): Promise<void> {
    await this.run(["wait", `--for=${condition}`, `--timeout=${Math.ceil(timeoutMs / 1000)}s`, ...what], {
      timeoutMs: timeoutMs + 10_000,
    });
  }
}
