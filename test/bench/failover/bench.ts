import { join } from "node:path";
import { z } from "zod";
import { NATIVE_SETUP, runAgentPart } from "../native/agent-part.ts";
import { medianOf, milliseconds, type Report, worstOf } from "../report.ts";

/** What chaos asks of a cluster, for all clients of a node. */
const LIMITS = { steered: { atMost: 1_000 }, ended: { atMost: 1_500 } };

const Findings = z.object({ steeredMs: z.array(z.number()), endedMs: z.array(z.number()) });

/** How long it takes from the death of a gateway until the clients of a node do without it. */
export async function benchFailover(rounds: number): Promise<Report> {
  const findings = Findings.parse(await runAgentPart(join(import.meta.dirname, "agent-part.ts"), rounds));
  const steered = milliseconds("new flows of the last client go elsewhere", findings.steeredMs);
  const ended = milliseconds(
    "flows that the gateway had are ended, those of the last client",
    findings.endedMs,
  );
  return {
    bench: "failover",
    setup: `one of 3 gateways dies, program and kernel; ${NATIVE_SETUP}`,
    series: [steered, ended],
    targets: [
      medianOf(steered, LIMITS.steered),
      worstOf(steered, LIMITS.steered),
      medianOf(ended, LIMITS.ended),
      worstOf(ended, LIMITS.ended),
    ],
  };
}
