import { join } from "node:path";
import { z } from "zod";
import { loadProgram } from "../../chaos/load-program.ts";
import { Round } from "../../chaos/round.ts";
import { NATIVE_SETUP, runAgentPart } from "../native/agent-part.ts";
import { type Findings, joined, milliseconds, type Report, worstOf } from "../report.ts";
import { FLOWS } from "./flows.ts";

/** What chaos asks of a cluster. */
const LIMITS = { elsewhere: { atMost: 1_000 }, ended: { atMost: 1_500 }, hanging: { atMost: 0 } };

const Times = z.object({
  deaths: z.array(z.object({ steeredMs: z.number(), endedMs: z.number() })),
  /** By a client with flows. */
  felt: z.array(Round),
  falseAlarms: z.int(),
});
type Times = z.infer<typeof Times>;

/** How long it takes from the death of a gateway until the clients of a node do without it. */
export async function benchFailover(rounds: number): Promise<Report> {
  const program = join(import.meta.dirname, "agent-part.ts");
  const ofOne = Times.parse(await runAgentPart(program, rounds, 1, await loadProgram()));
  const ofAll = Times.parse(await runAgentPart(program, rounds));
  const falseAlarms = ofOne.falseAlarms + ofAll.falseAlarms;
  return {
    bench: "failover",
    setup:
      `one of 3 gateways dies, program and kernel; one client with ${FLOWS}, and without flows ${NATIVE_SETUP}; ` +
      `${falseAlarms} false alarms of the others`,
    ...joined([feltBy(ofOne), findings("one client", ofOne), findings("the last of all clients", ofAll)]),
  };
}

/** What the programs of a client notice. */
function feltBy({ felt }: Times): Findings {
  const failing = milliseconds(
    "new connections fail",
    felt.map(({ downtimeMs }) => downtimeMs),
  );
  const reset = milliseconds(
    "the last open flow of the gateway is reset",
    felt.map(({ slowestResetMs = 0 }) => slowestResetMs),
  );
  const hanging = felt.reduce((sum, { broken }) => sum + broken, 0);
  return {
    series: [failing, reset],
    targets: [
      worstOf(failing, LIMITS.elsewhere),
      worstOf(reset, LIMITS.ended),
      { name: "open flows that hang", value: hanging, limit: LIMITS.hanging },
    ],
  };
}

function findings(whose: string, { deaths }: Times): Findings {
  const steered = milliseconds(
    `new flows go elsewhere: ${whose}`,
    deaths.map(({ steeredMs }) => steeredMs),
  );
  const ended = milliseconds(
    `flows that the gateway had are ended: ${whose}`,
    deaths.map(({ endedMs }) => endedMs),
  );
  return {
    series: [steered, ended],
    targets: [worstOf(steered, LIMITS.elsewhere), worstOf(ended, LIMITS.ended)],
  };
}
