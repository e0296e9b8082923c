import { join } from "node:path";
import { waitUntil } from "@egress-nat/tools/system/wait-until";
import { execa } from "execa";
import { inNetns, netnsPath } from "../system/network-namespace.ts";
import { BackgroundProcess } from "../system/process.ts";
import type { ClusterPlan } from "./plan.ts";

const PROCESS = "internet";

/** What must run before a command to run it in the internet's namespace. */
export function insideInternet(plan: ClusterPlan): readonly string[] {
  return inNetns(netnsPath(plan.internet.netns), []);
}

/** The process of the internet's servers; internet/server.ts says what they answer. */
export function internetProcess(plan: ClusterPlan): BackgroundProcess {
  return new BackgroundProcess(plan.folder, PROCESS);
}

/** Starts the internet's servers and waits until they answer. */
export async function startInternet(plan: ClusterPlan): Promise<void> {
  const server = await BackgroundProcess.start({
    name: PROCESS,
    folder: plan.folder,
    lifetime: plan.options.lifetime,
    netns: netnsPath(plan.internet.netns),
    command: [
      process.execPath,
      join(import.meta.dirname, "internet", "server.ts"),
      ...plan.internet.legs.flatMap((leg) => leg.addresses),
    ],
  });
  const question = [...insideInternet(plan), "curl", "--silent", "--fail", "http://127.0.0.1/"];
  const [file, ...args] = question as [string, ...string[]];
  await waitUntil(
    async () => {
      server.assertRunning();
      return (await execa(file, args, { reject: false })).exitCode === 0;
    },
    {
      what: "the internet's servers",
      timeoutMs: 20_000,
      explain: () => server.failure("do not answer").message,
    },
  );
}
