import type { Report } from "../report.ts";
import { measureBystander } from "./bystander.ts";

/** What the plugin costs a pod that is no client. */
export async function benchCniAdd(rounds: number): Promise<Report> {
  const setup = "one exec of each in turn, on this machine";
  return { bench: "cni-add", setup, ...(await measureBystander(rounds)) };
}
