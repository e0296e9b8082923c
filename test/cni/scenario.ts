/** What driver/main.go reads and answers. */

import { z } from "zod";

export type RuntimeCommand = "ADD" | "CHECK" | "DEL" | "GC" | "STATUS";

export interface Scenario {
  /** The library that executes the plugins. */
  readonly through: "libcni" | "go-cni";
  readonly pluginFolders: readonly string[];
  /** Where libcni keeps results from ADD to DEL; go-cni has a place of its own. */
  readonly cacheFolder?: string;
  /** A network configuration list. */
  readonly configuration: object;
  readonly steps: readonly Step[];
}

interface Step {
  readonly command: RuntimeCommand;
  readonly containerId?: string;
  readonly netns?: string;
  readonly ifname?: string;
  /** CNI_ARGS */
  readonly args?: Readonly<Record<string, string>>;
  readonly capabilityArgs?: Readonly<Record<string, unknown>>;
  readonly validAttachments?: readonly { readonly containerID: string; readonly ifname: string }[];
}

const StepAnswer = z.object({
  /** Such as "bridge ADD"; null where the library does not tell. */
  executions: z.array(z.string()).nullable(),
  result: z.record(z.string(), z.unknown()).optional(),
  /** Without a code where the library refused to go on. */
  error: z.object({ code: z.number().optional(), message: z.string() }).optional(),
});
export type StepAnswer = z.infer<typeof StepAnswer>;

/** @param text that the driver has printed */
export function parseAnswers(text: string): readonly StepAnswer[] {
  return z.array(StepAnswer).parse(JSON.parse(text));
}
