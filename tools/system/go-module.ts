import { execa } from "execa";
import { z } from "zod";
import { ToolError } from "./tool-error.ts";

const Download = z.object({ Dir: z.string(), Version: z.string() });

export interface GoModule {
  /** Its files, for reading only. */
  readonly folder: string;
  readonly version: string;
}

/**
 * The files of a Go module, of the version that a go.mod requires and with the content that its go.sum names.
 *
 * @param folder with go.mod and go.sum
 * @param path of the module, such as github.com/cybozu-go/coil/v2
 * @throws ToolError `go-failed`
 */
export async function goModule(folder: string, path: string): Promise<GoModule> {
  const output = await runGo(["mod", "download", "-json", path], folder);
  const { Dir, Version } = Download.parse(JSON.parse(output));
  return { folder: Dir, version: Version };
}

/**
 * Runs the command go.
 *
 * @returns what it prints
 * @throws ToolError `go-failed`
 */
export async function runGo(args: readonly string[], cwd: string): Promise<string> {
  const env = { CGO_ENABLED: "0", GOWORK: "off" };
  const { failed, stdout, all } = await execa("go", args, { cwd, env, reject: false, all: true });
  if (!failed) return stdout;
  throw new ToolError("go-failed", `go ${args.join(" ")} failed in ${cwd}:\n${all}`);
}
