import { join } from "node:path";
import { z } from "zod";
import { NATIVE_SETUP, runAgentPart } from "../native/agent-part.ts";
import { medianOf, milliseconds, type Report } from "../report.ts";

const LIMIT = { atMost: 300 };

const Findings = z.object({
  drainsMs: z.array(z.number()),
  suspectMs: z.array(z.number()),
  deadMs: z.array(z.number()),
  lookedAtMs: z.array(z.number()),
});

/** How fast the clients of a node follow a change of their gateways. */
export async function benchSelection(rounds: number): Promise<Report> {
  const findings = Findings.parse(await runAgentPart(join(import.meta.dirname, "agent-part.ts"), rounds));
  const limited = [
    milliseconds(
      "EndpointSlices have one of 16 gateways as terminating: until the last client begins no flow with it",
      findings.drainsMs,
    ),
    milliseconds("its heartbeat is missed: until the last client begins none with it", findings.suspectMs),
    milliseconds("it is dead: until the last client's flows are ended", findings.deadMs),
  ];
  return {
    bench: "selection",
    setup: NATIVE_SETUP,
    series: [...limited, milliseconds("as long as a look at all clients takes", findings.lookedAtMs)],
    targets: limited.map((series) => medianOf(series, LIMIT)),
  };
}
