import type { Transport } from "@egress-nat/kube";

/** How many requests the apiserver has answered, by verb: all but those of {@link OTHERS}. */
export type Requests = Readonly<Record<string, number>>;

/** Leases and events, and the apiserver's own look at what addresses Services have, every few minutes. */
const OTHERS = [/resource="(leases|events)"/, /resource="services",.*verb="LIST"/];

const WRITES = ["POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"];

/** By the apiserver's own account: nothing that anybody sends passes by it. */
export async function requestsAnswered(transport: Transport): Promise<Requests> {
  const counts: Record<string, number> = {};
  for (const line of (await metrics(transport)).split("\n")) {
    const [, labels = "", count] = /^apiserver_request_total\{(.*)\} (.*)$/.exec(line) ?? [];
    if (count === undefined || OTHERS.some((others) => others.test(labels))) continue;
    const verb = /verb="(\w+)"/.exec(labels)?.[1] ?? "";
    counts[verb] = (counts[verb] ?? 0) + Number(count);
  }
  return counts;
}

/** @returns how many of these requests were answered between two moments */
export function answeredBetween(before: Requests, after: Requests, verbs: readonly string[]): number {
  return verbs.reduce((sum, verb) => sum + (after[verb] ?? 0) - (before[verb] ?? 0), 0);
}

export function writesBetween(before: Requests, after: Requests): number {
  return answeredBetween(before, after, WRITES);
}

async function metrics(transport: Transport): Promise<string> {
  const chunks: Buffer[] = [];
  const stream = await transport.stream({ path: "/metrics", accept: "text/plain", idleTimeoutMs: 30_000 });
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}
