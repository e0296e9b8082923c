/** Whether a gateway takes new flows, and whether those that it has still pass: two signals, because either may end alone. */

/** What the program in a gateway says; undefined: it has not answered. stranded: it has lost its way out. */
export type Beat = "alive" | "stranded" | undefined;

/**
 * Of a gateway at one of its addresses.
 *
 * - unknown: nobody has heard of it yet; the API says that it is there
 * - alive: its program answers the heartbeat, at any of its addresses
 * - stranded: it does, and says that it has lost its way out
 * - suspect: it does not, or neither it nor its tunnel answers at this address; flows that it has go on
 * - dead: nothing comes back through any tunnel to it either
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
  const { answer } = heard.find((each) => !isQuiet(each) && each.answer !== undefined) ?? {};
  if (answer === undefined) {
    const pulse = pulseOfUnheard(heard);
    return heard.map((each) => (isQuiet(each) ? pulse : "unknown"));
  }
  return heard.map((each) => (isQuiet(each) && each.silences > 0 ? "suspect" : answer));
}

function pulseOfUnheard(heard: readonly Heard[]): Pulse {
  const quiet = heard.filter(isQuiet);
  if (quiet.some(({ answers }) => answers > 0)) return "suspect";
  const dead = quiet.filter(({ silences }) => silences >= ENOUGH.silences);
  return dead.length > 0 && quiet.every((each) => dead.includes(each) || hasNoTunnel(each))
    ? "dead"
    : "suspect";
}

export function isHeard(pulse: Pulse): boolean {
  return pulse === "alive" || pulse === "stranded";
}

/** Of a gateway as a whole, by that at each of its addresses: the worst. */
export function pulseOfAll(pulses: readonly Pulse[]): Pulse {
  return pulses.find((pulse) => !isHeard(pulse)) ?? pulses[0] ?? "unknown";
}

/** @returns of each address of a gateway whether it is asked in a round: they take turns while all answer */
export function askedIn(round: number, heard: readonly Heard[]): readonly boolean[] {
  if (heard.every(isWell)) return heard.map((_, index) => index === round % heard.length);
  const areAllAsked = !heard.some(isWell) || round % ROUNDS_OF_SILENT === 0;
  return heard.map((each) => areAllAsked || !isQuiet(each));
}

/**
 * How long after the last probe a tunnel to an address is asked again, in milliseconds; undefined: it is not. It is asked
 * early, so that the answer is there once it is needed.
 *
 * @param others what is heard at the other addresses of the gateway
 */
export function probeAgainMs(heard: Heard, others: readonly Heard[]): number | undefined {
  const { misses, silences, unasked } = heard;
  if (others.some(isWell)) {
    if (!isQuiet(heard)) return undefined;
    return silences > 0 || unasked > 0 ? PROBE_AGAIN.usual : PROBE_AGAIN.calm;
  }
  if (misses === 0) return undefined;
  const isNews = ![heard, ...others].every(isQuiet);
  return isNews || isInDoubt(heard) ? PROBE_AGAIN.urgent : PROBE_AGAIN.usual;
}

/** Whether one more silent probe makes it dead. */
export function isInDoubt({ silences, unasked }: Heard): boolean {
  return silences > 0 && silences < ENOUGH.silences && unasked === 0;
}

function isWell({ answer, misses }: Heard): boolean {
  return answer !== undefined && misses === 0;
}

function isQuiet({ misses }: Heard): boolean {
  return misses >= ENOUGH.misses;
}

/** Clients of this node may not have the family. */
function hasNoTunnel({ unasked }: Heard): boolean {
  return unasked > 0;
}

/**
 * @param heard at each address of one gateway
 * @param answers of a round, at each
 */
export function afterBeats(
  heard: readonly Heard[],
  answers: readonly (Beat | "unasked")[],
): readonly Heard[] {
  // While they take turns, one speaks for all, and a late one for that whose turn it is.
  const spoken = answers.find((answer) => answer !== undefined && answer !== "unasked");
  const said = heard.every(isWell) ? heard.map(() => spoken) : answers;
  const isWellSomewhere = heard.some(isWell);
  const after = heard.map((each, index) => {
    const answer = said[index];
    return answer === "unasked" ? each : afterBeat(each, answer, isWellSomewhere);
  });
  const isBack = heard.every(isQuiet) && !after.every(isQuiet);
  // While all was silent, nothing was learnt of one family, and its tunnels may be gone since.
  return isBack ? after.map((each) => (hasNoTunnel(each) ? { ...each, silences: 0 } : each)) : after;
}

/** @param isWellSomewhere a single answer says little while another address is well */
function afterBeat(heard: Heard, answer: Beat, isWellSomewhere: boolean): Heard {
  if (answer === undefined) return { ...heard, answers: 0, misses: heard.misses + 1 };
  const answers = heard.answers + 1;
  const isTrusted = !isQuiet(heard) || answers >= ENOUGH.answers;
  if (isTrusted) return { ...HEARD_OF_NOTHING_BAD, answer, answers };
  return { ...heard, answer, answers, silences: isWellSomewhere ? heard.silences : 0 };
}

/** @param answered undefined where no client has a tunnel to ask through */
export function afterProbe(heard: Heard, answered: boolean | undefined): Heard {
  if (heard.misses === 0) return heard;
  if (answered !== undefined) return { ...heard, silences: answered ? 0 : heard.silences + 1, unasked: 0 };
  const unasked = heard.unasked + 1;
  return { ...heard, unasked, silences: unasked < ENOUGH.unasked ? heard.silences : 0 };
}
