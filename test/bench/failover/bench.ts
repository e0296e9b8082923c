import { join } from "node:path";
import { z } from "zod";
import { loadProgram } from "../../chaos/load-program.ts";
import { Round } from "../../chaos/round.ts";
import { NATIVE_SETUP, runAgentPart } from "../native/agent-part.ts";
import {
  type Findings,
  joined,
  type Limit,
  milliseconds,
  type Report,
  type Series,
  worstOf,
} from "../report.ts";
import { FLOWS } from "./flows.ts";

/** What chaos asks of a cluster. */
const LIMITS = {
  elsewhere: { atMost: 1_000 },
  ended: { atMost: 1_500 },
  uplinkLost: { atMost: 3_000 },
  hanging: { atMost: 0 },
};

const MOVED = ", its pod gets other addresses meanwhile";

const Steered = z.object({
  steeredMs: z.number(),
  /** By a client with flows. */
  felt: Round.optional(),
});
const Death = Steered.extend({ endedMs: z.number() });
const Times = z.object({
  deaths: z.array(Death),
  /** Those in which the pod gets other addresses meanwhile. */
  moves: z.array(Death),
  /** Of the way out. */
  losses: z.array(Steered),
  falseAlarms: z.int(),
});
type Times = z.infer<typeof Times>;

/** How long it takes from the death of a gateway, or of its way out, until the clients of a node do without it. */
export async function benchFailover(rounds: number): Promise<Report> {
  const program = join(import.meta.dirname, "agent-part.ts");
  const ofOne = Times.parse(await runAgentPart(program, rounds, 1, await loadProgram()));
  const ofAll = Times.parse(await runAgentPart(program, rounds));
  const falseAlarms = ofOne.falseAlarms + ofAll.falseAlarms;
  return {
    bench: "failover",
    setup:
      "one of 3 gateways dies, program and kernel, dies while its pod gets other addresses, and loses its way out; " +
      `one client with ${FLOWS}, and without flows ${NATIVE_SETUP}; ${falseAlarms} false alarms of the others`,
    ...joined([feltBy(ofOne), findings("one client", ofOne), findings("the last of all clients", ofAll)]),
  };
}

/** What the programs of a client notice. */
function feltBy({ deaths, moves, losses }: Times): Findings {
  const feltIn = (harm: readonly z.infer<typeof Steered>[]) => harm.flatMap(({ felt }) => felt ?? []);
  const uplinkLost = downtimes("new connections fail, way out lost", feltIn(losses));
  return joined([
    feltDeaths("", feltIn(deaths)),
    feltDeaths(MOVED, feltIn(moves)),
    eachWithin([uplinkLost, LIMITS.uplinkLost]),
  ]);
}

/** @param kind of death */
function feltDeaths(kind: string, rounds: readonly Round[]): Findings {
  const failing = downtimes(`new connections fail${kind}`, rounds);
  const reset = milliseconds(
    `the last open flow of the gateway is reset${kind}`,
    rounds.map(({ slowestResetMs = 0 }) => slowestResetMs),
  );
  const hanging = {
    name: `open flows that hang${kind}`,
    value: rounds.reduce((sum, { broken }) => sum + broken, 0),
    limit: LIMITS.hanging,
  };
  return joined([
    eachWithin([failing, LIMITS.elsewhere], [reset, LIMITS.ended]),
    { series: [], targets: [hanging] },
  ]);
}

function downtimes(name: string, rounds: readonly Round[]): Series {
  return milliseconds(
    name,
    rounds.map(({ downtimeMs }) => downtimeMs),
  );
}

function findings(whose: string, { deaths, moves, losses }: Times): Findings {
  const uplinkLost = steeredBy(`new flows go elsewhere, way out lost: ${whose}`, losses);
  return joined([
    findingsOf(whose, deaths),
    findingsOf(`${whose}${MOVED}`, moves),
    eachWithin([uplinkLost, LIMITS.uplinkLost]),
  ]);
}

function findingsOf(whose: string, deaths: readonly z.infer<typeof Death>[]): Findings {
  const steered = steeredBy(`new flows go elsewhere: ${whose}`, deaths);
  const ended = milliseconds(
    `flows that the gateway had are ended: ${whose}`,
    deaths.map(({ endedMs }) => endedMs),
  );
  return eachWithin([steered, LIMITS.elsewhere], [ended, LIMITS.ended]);
}

function eachWithin(...limited: readonly (readonly [Series, Limit])[]): Findings {
  return {
    series: limited.map(([series]) => series),
    targets: limited.map(([series, limit]) => worstOf(series, limit)),
  };
}

function steeredBy(name: string, harm: readonly z.infer<typeof Steered>[]): Series {
  return milliseconds(
    name,
    harm.map(({ steeredMs }) => steeredMs),
  );
}
