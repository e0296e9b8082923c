/** Whether a gateway takes new flows, and whether those that it has still pass: two signals, because either may end alone. */

/** What the program in a gateway says; undefined: it has not answered. stranded: it has lost its way out. */
export type Beat = "alive" | "stranded" | undefined;

/**
 * - unknown: nobody has heard of it yet; the API says that it is there
 * - alive: its program answers the heartbeat
 * - stranded: it does, and says that it has lost its way out
 * - suspect: it does not, and nothing says that the kernel of its network namespace is gone as well: flows that it has go on
 * - dead: nothing comes back through the tunnel either
 */
export type Pulse = "unknown" | "alive" | "stranded" | "suspect" | "dead";

/** In a row. */
const ENOUGH = {
  /** To suspect it: one datagram may be lost, and two beats fall into a short stall. */
  misses: 3,
  /** To trust it again: where datagrams are lost now and then, a gateway is not to come and go. */
  answers: 5,
  /** Of probes, to take it for dead: flows that are ended cannot be taken back. */
  silences: 2,
  /** To forget the silences. Flows of the dead were ended, so nobody may be left who has a tunnel to ask through. */
  unasked: 30,
};

/** What has been heard of one address of a gateway so far. */
export interface Heard {
  /** What the last answer was; undefined: there was none. */
  readonly answer: Beat;
  /** Heartbeats that were not answered since it was alive, or since it was trusted again. */
  readonly misses: number;
  /** Heartbeats that were answered in a row. */
  readonly answers: number;
  /** Probes through a tunnel that were not answered, in a row. */
  readonly silences: number;
  /** Probes that nobody could send, in a row. */
  readonly unasked: number;
}

export const HEARD_OF_NOTHING_BAD: Heard = {
  answer: undefined,
  misses: 0,
  answers: 0,
  silences: 0,
  unasked: 0,
};

export function pulseOf({ answer, misses, silences }: Heard): Pulse {
  if (misses < ENOUGH.misses) return answer ?? "unknown";
  return silences < ENOUGH.silences ? "suspect" : "dead";
}

export function isHeard(pulse: Pulse): boolean {
  return pulse === "alive" || pulse === "stranded";
}

/** Of a gateway as a whole, with what is heard at each of its addresses: it is down if it is down at all of them. */
export function pulseOfAll(pulses: readonly Pulse[]): Pulse {
  const isMissed = pulses.some((pulse) => pulse === "suspect" || pulse === "dead");
  if (!isMissed) return pulses[0] ?? "unknown";
  return pulses.every((pulse) => pulse === "dead") ? "dead" : "suspect";
}

/** Whether a tunnel is to be asked: early, so that the answer is there once it is needed. */
export function asksTunnel({ misses }: Heard): boolean {
  return misses > 0;
}

export function afterBeat(heard: Heard, answer: Beat): Heard {
  if (answer === undefined) return { ...heard, answers: 0, misses: heard.misses + 1 };
  const answers = heard.answers + 1;
  const isTrusted = heard.misses < ENOUGH.misses || answers >= ENOUGH.answers;
  return isTrusted
    ? { ...HEARD_OF_NOTHING_BAD, answer, answers }
    : { ...heard, answer, answers, silences: 0 };
}

/** @param answered undefined where no client has a tunnel to ask through */
export function afterProbe(heard: Heard, answered: boolean | undefined): Heard {
  if (heard.misses === 0) return heard;
  if (answered !== undefined) return { ...heard, silences: answered ? 0 : heard.silences + 1, unasked: 0 };
  const unasked = heard.unasked + 1;
  return unasked < ENOUGH.unasked ? { ...heard, unasked } : { ...heard, silences: 0, unasked: 0 };
}
