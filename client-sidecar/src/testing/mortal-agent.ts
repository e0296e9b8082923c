/**
 * A program: a node agent that kills itself at one of its steps. A step is a write to the API, a state file that gets its
 * name or is removed, or the set-up of a network namespace or its removal.
 */

import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import type { ClientConfig } from "@egress-nat/founat";
import { createTransport, loadCredentials, type Transport } from "@egress-nat/kube";
import { createLogger } from "@egress-nat/program";
import { agentInFolder, type NodeInFolder, netnsDirectory } from "./agent-in-folder.ts";
import { LastingNetworks } from "./lasting-networks.ts";

export interface MortalAgentOptions extends NodeInFolder {
  readonly kubeconfig: string;
}

/** Whether the process ends right before a step, or right after it. */
export type Death = "before" | "after";

/** Which one of the steps from now on is the last, from 1. */
export interface Fate {
  readonly step: number;
  readonly death: Death;
}

/** Answered by who is alive, and has died of nothing that it did before. */
export type Question = "are you alive?";

let fate: Fate | undefined;
let steps = 0;

/** @returns to be called when the step is done */
function begin(): () => void {
  if (fate === undefined) return () => undefined;
  steps += 1;
  const isLast = steps === fate.step;
  if (isLast && fate.death === "before") die();
  return () => {
    if (isLast) die();
  };
}

/** Nothing runs after it: a signal to the process itself is delivered before kill(2) returns. */
function die(): void {
  process.kill(process.pid, "SIGKILL");
}

async function step<T>(work: () => Promise<T>): Promise<T> {
  const end = begin();
  const result = await work();
  end();
  return result;
}

function countSteps<Args extends readonly unknown[]>(work: (...args: Args) => void): (...args: Args) => void {
  return (...args) => {
    const end = begin();
    work(...args);
    end();
  };
}

class MortalNetworks extends LastingNetworks {
  override setUp(netns: string, config: ClientConfig): Promise<void> {
    return step(() => super.setUp(netns, config));
  }

  override remove(netns: string, isFree: () => boolean, uplink?: string): Promise<boolean> {
    return step(() => super.remove(netns, isFree, uplink));
  }
}

function mortal(transport: Transport): Transport {
  return {
    request: (options) =>
      options.method === "GET" ? transport.request(options) : step(() => transport.request(options)),
    stream: (options) => transport.stream(options),
    close: () => transport.close(),
  };
}

const { kubeconfig, ...node }: MortalAgentOptions = JSON.parse(process.argv[2] ?? "");
fs.renameSync = countSteps(fs.renameSync);
fs.rmSync = countSteps(fs.rmSync);
syncBuiltinESMExports();
process.on("message", (message: Fate | Question) => {
  if (typeof message === "object") fate = message;
  process.send?.("yes");
});
process.on("disconnect", die);
const logger = createLogger({ name: "test", level: "silent" });
const transport = createTransport({ credentials: await loadCredentials({ kubeconfig }), logger });
const networks = new MortalNetworks(netnsDirectory(node.folder));
await agentInFolder(node, mortal(transport), networks).run(new AbortController().signal);
