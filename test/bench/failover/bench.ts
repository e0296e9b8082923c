import { join } from "node:path";
import { z } from "zod";
import { runAgentPart, SETUP_OF_ONE } from "../native/agent-part.ts";
import { type Findings, joined, milliseconds, type Report, worstOf } from "../report.ts";

/** What chaos asks of a cluster. */
const LIMITS = { steered: { atMost: 1_000 }, ended: { atMost: 1_500 } };

const Times = z.object({
  steeredMs: z.array(z.number()),
  endedMs: z.array(z.number()),
  falseAlarms: z.int(),
});

/** How long it takes from the death of a gateway until the clients of a node do without it. */
export async function benchFailover(rounds: number): Promise<Report> {
  const program = join(import.meta.dirname, "agent-part.ts");
  const ofOne = Times.parse(await runAgentPart(program, rounds, 1));
  const ofAll = Times.parse(await runAgentPart(program, rounds));
  return {
    bench: "failover",
    setup:
      `one of 3 gateways dies, program and kernel; ${SETUP_OF_ONE}, without open flows; ` +
      `${ofOne.falseAlarms + ofAll.falseAlarms} false alarms of the others`,
    ...joined([findings("one client", ofOne), findings("the last of all clients", ofAll)]),
  };
}

function findings(whose: string, { steeredMs, endedMs }: z.infer<typeof Times>): Findings {
  const steered = milliseconds(`new flows go elsewhere: ${whose}`, steeredMs);
  const ended = milliseconds(`flows that the gateway had are ended: ${whose}`, endedMs);
  return {
    series: [steered, ended],
    targets: [worstOf(steered, LIMITS.steered), worstOf(ended, LIMITS.ended)],
  };
}
