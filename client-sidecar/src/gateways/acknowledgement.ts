/** Waiting until gateways have applied a slice: they say so over the heartbeat. */

import { HEARTBEAT_PORT } from "@egress-nat/crds";
import type { HeartbeatProber } from "@egress-nat/founat";
import { type Clock, pause, systemClock } from "@egress-nat/kube";
import type { SliceVersion } from "../slices/writer.ts";
import type { Gateway } from "./view.ts";

/** A gateway on the next node answers in less than a millisecond; a busy one may need some. */
const PROBE_TIMEOUT_MS = 500;

const FIRST_POLL_MS = 10;
const LAST_POLL_MS = 250;

/** After so long without an answer a gateway holds up nobody, if another one has acknowledged. */
const SILENCE_MS = 2_000;

/** What one gateway says of one slice. */
export type Answer = "applied" | "behind" | "silent";

export interface AskerOptions {
  readonly prober: Pick<HeartbeatProber, "probe">;
  readonly port?: number;
}

/** Asks gateways over the heartbeat which slices they have applied. */
export class Asker {
  readonly #prober: Pick<HeartbeatProber, "probe">;
  readonly #port: number;

  constructor({ prober, port = HEARTBEAT_PORT }: AskerOptions) {
    this.#prober = prober;
    this.#port = port;
  }

  async ask({ addresses }: Gateway, version: SliceVersion, signal: AbortSignal): Promise<Answer> {
    // The node may have a route to the gateway in one family only.
    const answers = addresses.map(async (address) => {
      const values = await this.#prober.probe(address, this.#port, [version.uid], {
        timeoutMs: PROBE_TIMEOUT_MS,
        signal,
      });
      if (values === undefined) throw new Error("no answer");
      return values;
    });
    const values = await Promise.any(answers).catch(() => undefined);
    if (values === undefined) return "silent";
    return hasApplied(values.get(version.uid), version) ? "applied" : "behind";
  }
}

/** A gateway that does not know a slice trusts none of its clients. */
function hasApplied(value: string | undefined, { generation }: SliceVersion): boolean {
  if (generation === undefined) return value === undefined;
  return value !== undefined && Number(value) >= generation;
}

export interface WaitOptions {
  readonly asker: Pick<Asker, "ask">;
  /** The gateways of now: they may change while this waits. */
  readonly gateways: () => readonly Gateway[];
  readonly version: SliceVersion;
  readonly deadlineMs: number;
  readonly signal: AbortSignal;
  readonly clock?: Clock;
}

/** What came of a wait, by gateways' names. */
export interface Acknowledgement {
  /** Whether the client may start: each gateway that answers has applied the slice, and at least one has. */
  readonly complete: boolean;
  readonly applied: readonly string[];
  readonly behind: readonly string[];
  readonly silent: readonly string[];
}

/**
 * Waits until every ready gateway that answers has applied a slice.
 *
 * @throws the signal's reason
 */
export async function awaitAcknowledgement(options: WaitOptions): Promise<Acknowledgement> {
  const { gateways, version, asker, deadlineMs, signal, clock = systemClock } = options;
  const startedAt = clock.now();
  const heard = new Map<string, Answer>();
  for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(pollMs * 2, LAST_POLL_MS)) {
    const ready = gateways().filter((gateway) => gateway.ready);
    await Promise.all(
      ready.map(async (gateway) => {
        if (heard.get(gateway.name) === "applied") return;
        const answer = await asker.ask(gateway, version, signal);
        // Who has answered once is alive: one lost datagram must not leave it out.
        if (answer !== "silent" || !heard.has(gateway.name)) heard.set(gateway.name, answer);
      }),
    );
    signal.throwIfAborted();
    const elapsedMs = clock.now() - startedAt;
    const named = (answer: Answer) =>
      ready.map(({ name }) => name).filter((name) => heard.get(name) === answer);
    const [applied, behind, silent] = [named("applied"), named("behind"), named("silent")];
    const patient = silent.length > 0 && elapsedMs < Math.min(SILENCE_MS, deadlineMs);
    const complete = applied.length > 0 && behind.length === 0 && !patient;
    if (complete || elapsedMs >= deadlineMs) return { complete, applied, behind, silent };
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
  asker: Pick<Asker, "ask">,
  gateways: readonly Gateway[],
  version: SliceVersion,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const answers = await Promise.all(
    gateways.map(async (gateway) => ({ ...gateway, answer: await asker.ask(gateway, version, signal) })),
  );
  signal.throwIfAborted();
  return answers.filter(({ answer }) => answer !== "applied").map(({ name }) => name);
}
