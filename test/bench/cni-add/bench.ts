import type { Report } from "../report.ts";
import { measureBystander } from "./bystander.ts";
import { measureClient } from "./client.ts";

/** A client's ADD takes a hundred times as long as that of a pod that is not a client. */
const BYSTANDERS_PER_CLIENT = 5;

/** What the plugin costs a pod: one that is no client, and one that is. */
export async function benchCniAdd(rounds: number): Promise<Report> {
  const bystander = await measureBystander(rounds);
  const client = await measureClient(Math.ceil(rounds / BYSTANDERS_PER_CLIENT));
  return {
    bench: "cni-add",
    setup: "one exec of each in turn; of a pod that is no client on this machine, of a client on a node",
    series: [...bystander.series, ...client.series],
    targets: [...bystander.targets, ...client.targets],
  };
}
