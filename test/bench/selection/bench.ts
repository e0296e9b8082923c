import { join } from "node:path";
import { z } from "zod";
import { NATIVE_SETUP, runAgentPart } from "../native/agent-part.ts";
import { medianOf, milliseconds, type Report } from "../report.ts";

const LIMIT = { atMost: 500 };

const Findings = z.object({
  steeredMs: z.array(z.number()),
  endedMs: z.array(z.number()),
  lookedAtMs: z.array(z.number()),
});

/** How fast the clients of a node follow a change of their gateways. */
export async function benchSelection(rounds: number): Promise<Report> {
  const findings = await runAgentPart(join(import.meta.dirname, "agent-part.ts"), rounds);
  const { steeredMs, endedMs, lookedAtMs } = Findings.parse(findings);
  const steered = milliseconds(
    "one of 16 gateways takes no new flows: until the last client follows",
    steeredMs,
  );
  const ended = milliseconds("it is dead: until the last client's flows are ended", endedMs);
  const lookedAt = milliseconds("as long as a look at all clients takes", lookedAtMs);
  return {
    bench: "selection",
    setup: NATIVE_SETUP,
    series: [steered, ended, lookedAt],
    targets: [medianOf(steered, LIMIT), medianOf(ended, LIMIT)],
  };
}
