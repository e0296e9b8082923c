/** Whether a gateway takes new flows, and whether those that it has still pass: two signals, because either may end alone. */

/** What the program in a gateway says; undefined: it has not answered. stranded: it has lost its way out. */
export type Beat = "alive" | "stranded" | undefined;

/**
 * Of a gateway at one of its addresses.
 *
 * - unknown: nobody has heard of it yet; the API says that it is there
 * - alive: its program answers the heartbeat, at any of its addresses
 * - stranded: it does, and says that it has lost its way out
 * - suspect: it does not, or no tunnel to this address answers, and nothing says that all flows to this address are lost
 * - dead: nothing comes back through the tunnel to this address
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
  /** The same while its program is heard at another address: then it is its tunnel alone that says so. */
  silencesAlone: 5,
  /** To forget the silences but one. Flows of the dead were ended, so nobody may be left who has a tunnel to ask through. */
  unasked: 30,
};

/** In milliseconds, from the end of one probe to the next. */
const PROBE_AGAIN = {
  /** While nobody knows whether its flows pass. */
  urgent: 0,
  usual: 1_000,
  /** Where its program is heard at another address, and its tunnel answers: a policy may drop heartbeats of one family. */
  calm: 5_000,
};

/** An address that is silent while another one of the gateway answers is asked in each round of so many. */
const ROUNDS_OF_SILENT = 5;

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

/** @param heard at each address of one gateway */
export function pulsesOf(heard: readonly Heard[]): readonly Pulse[] {
  const answering = heard.filter((each) => !isQuiet(each));
  if (answering.length === 0) {
    const isAnyDead = heard.some(({ silences }) => silences >= ENOUGH.silences);
    return heard.map((each) => {
      const isDead = each.silences >= ENOUGH.silences || (isAnyDead && hasNoTunnel(each));
      return isDead ? "dead" : "suspect";
    });
  }
  const pulse = answering.find(({ answer }) => answer !== undefined)?.answer ?? "unknown";
  return heard.map((each) => {
    if (!isQuiet(each) || each.silences === 0) return pulse;
    return each.silences < ENOUGH.silencesAlone ? "suspect" : "dead";
  });
}

export function isHeard(pulse: Pulse): boolean {
  return pulse === "alive" || pulse === "stranded";
}

/** Of a gateway as a whole, by that at each of its addresses. */
export function pulseOfAll(pulses: readonly Pulse[]): Pulse {
  const isMissed = pulses.some((pulse) => pulse === "suspect" || pulse === "dead");
  if (!isMissed) return pulses[0] ?? "unknown";
  return pulses.every((pulse) => pulse === "dead") ? "dead" : "suspect";
}

/**
 * Which addresses of a gateway are asked in a round, by their index: one, and the next one in the next round, while all
 * answer.
 */
export function askedIn(round: number, heard: readonly Heard[]): readonly number[] {
  const all = heard.map((_, index) => index);
  const well = all.filter((index) => heard[index] !== undefined && isWell(heard[index]));
  if (well.length === 0) return all;
  if (well.length === all.length) return [round % all.length];
  const isTurn = round % ROUNDS_OF_SILENT === 0;
  return all.filter((index) => isTurn || heard[index] === undefined || !isQuiet(heard[index]));
}

/**
 * How long after the last probe a tunnel to an address is asked again, in milliseconds; undefined: it is not. It is asked
 * early, so that the answer is there once it is needed.
 *
 * @param others what is heard at the other addresses of the gateway
 */
export function probeAgainMs(heard: Heard, others: readonly Heard[]): number | undefined {
  if (others.some(isWell)) {
    if (!isQuiet(heard)) return undefined;
    return heard.silences > 0 && heard.unasked === 0 ? PROBE_AGAIN.usual : PROBE_AGAIN.calm;
  }
  if (heard.misses === 0) return undefined;
  const isUrgent = heard.silences > 0 && heard.silences < ENOUGH.silences && heard.unasked === 0;
  return isUrgent ? PROBE_AGAIN.urgent : PROBE_AGAIN.usual;
}

export function isWell({ answer, misses }: Heard): boolean {
  return answer !== undefined && misses === 0;
}

function isQuiet({ misses }: Heard): boolean {
  return misses >= ENOUGH.misses;
}

/** Nobody could ask, and nobody has been left without an answer: clients of this node may not have the family. */
function hasNoTunnel({ silences, unasked }: Heard): boolean {
  return silences === 0 && unasked > 0;
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
  const isForgotten = unasked >= ENOUGH.unasked && heard.silences > 1;
  return isForgotten ? { ...heard, silences: 1, unasked: 0 } : { ...heard, unasked };
}
