import { join } from "node:path";
import { z } from "zod";
import { loadProgram } from "../../chaos/load-program.ts";
import { Round } from "../../chaos/round.ts";
import { NATIVE_SETUP, runAgentPart } from "../native/agent-part.ts";
import { type Findings, joined, milliseconds, type Report, type Series, worstOf } from "../report.ts";
import { FLOWS } from "./flows.ts";

/** What chaos asks of a cluster. */
const LIMITS = {
  elsewhere: { atMost: 1_000 },
  ended: { atMost: 1_500 },
  uplinkLost: { atMost: 3_000 },
  hanging: { atMost: 0 },
};

const Steered = z.object({
  steeredMs: z.number(),
  /** By a client with flows. */
  felt: Round.optional(),
});
const Times = z.object({
  deaths: z.array(Steered.extend({ endedMs: z.number() })),
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
      "one of 3 gateways dies, program and kernel, and another time loses its way out; " +
      `one client with ${FLOWS}, and without flows ${NATIVE_SETUP}; ${falseAlarms} false alarms of the others`,
    ...joined([feltBy(ofOne), findings("one client", ofOne), findings("the last of all clients", ofAll)]),
  };
}

/** What the programs of a client notice. */
function feltBy({ deaths, losses }: Times): Findings {
  const died = deaths.flatMap(({ felt }) => felt ?? []);
  const failing = downtimes("new connections fail", died);
  const reset = milliseconds(
    "the last open flow of the gateway is reset",
    died.map(({ slowestResetMs = 0 }) => slowestResetMs),
  );
  const uplinkLost = downtimes(
    "new connections fail, way out lost",
    losses.flatMap(({ felt }) => felt ?? []),
  );
  return {
    series: [failing, reset, uplinkLost],
    targets: [
      worstOf(failing, LIMITS.elsewhere),
      worstOf(reset, LIMITS.ended),
      worstOf(uplinkLost, LIMITS.uplinkLost),
      {
        name: "open flows that hang",
        value: died.reduce((sum, { broken }) => sum + broken, 0),
        limit: LIMITS.hanging,
      },
    ],
  };
}

function downtimes(name: string, rounds: readonly Round[]): Series {
  return milliseconds(
    name,
    rounds.map(({ downtimeMs }) => downtimeMs),
  );
}

function findings(whose: string, { deaths, losses }: Times): Findings {
  const steered = steeredBy(`new flows go elsewhere: ${whose}`, deaths);
  const ended = milliseconds(
    `flows that the gateway had are ended: ${whose}`,
    deaths.map(({ endedMs }) => endedMs),
  );
  const uplinkLost = steeredBy(`new flows go elsewhere, way out lost: ${whose}`, losses);
  return {
    series: [steered, ended, uplinkLost],
    targets: [
      worstOf(steered, LIMITS.elsewhere),
      worstOf(ended, LIMITS.ended),
      worstOf(uplinkLost, LIMITS.uplinkLost),
    ],
  };
}

function steeredBy(name: string, harm: readonly z.infer<typeof Steered>[]): Series {
  return milliseconds(
    name,
    harm.map(({ steeredMs }) => steeredMs),
  );
}
