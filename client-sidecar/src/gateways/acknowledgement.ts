/** Waiting until gateways have applied a slice. */

import { type Clock, pause, systemClock } from "@egress-nat/kube";
import type { Answer, Ask, SliceVersion } from "./health.ts";
import { type Patience, type Verdict, verdict } from "./verdict.ts";
import type { Gateway } from "./view.ts";

const FIRST_POLL_MS = 10;
const LAST_POLL_MS = 250;

export interface WaitOptions {
  readonly ask: Ask;
  /** The gateways of now: they may change while this waits. */
  readonly gateways: () => readonly Gateway[];
  readonly version: SliceVersion;
  readonly patience: Patience;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/**
 * Waits until every ready gateway that answers has applied a slice.
 *
 * @throws the signal's reason
 */
export async function awaitAcknowledgement(
  options: WaitOptions,
): Promise<Exclude<Verdict, { decision: "wait" }>> {
  const { gateways, version, ask, patience, signal, clock = systemClock } = options;
  const startedAt = clock.now();
  const heard = new Map<string, Answer>();
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LAST_POLL_MS)) {
    const ready = gateways().filter((gateway) => gateway.ready);
    await Promise.all(
      ready.map(async (gateway) => {
        if (heard.get(gateway.name) === "applied") return;
        const answer = await ask(gateway, version, signal);
        // Who has answered once is alive: one lost datagram must not leave it out.
        if (answer !== "silent" || !heard.has(gateway.name)) heard.set(gateway.name, answer);
      }),
    );
    signal.throwIfAborted();
    const answers = new Map(ready.map(({ name }) => [name, heard.get(name) ?? "silent"]));
    const current = verdict(answers, clock.now() - startedAt, patience);
    if (current.decision !== "wait") return current;
    await pause(pollMs, signal, clock);
  }
}

/**
 * The gateways that may still trust what a slice no longer holds: all but those that say that they have applied it.
 * Silence says nothing: while the program in a gateway is down, its network namespace goes on by the last rules.
 *
 * @param gateways all that are left: one whose pod is gone trusts nobody
 * @returns their names
 * @throws the signal's reason
 */
export async function holders(
  ask: Ask,
  gateways: readonly Gateway[],
  version: SliceVersion,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const answers = await Promise.all(
    gateways.map(async (gateway) => ({ ...gateway, answer: await ask(gateway, version, signal) })),
  );
  signal.throwIfAborted();
  return answers.filter(({ answer }) => answer !== "applied").map(({ name }) => name);
}
