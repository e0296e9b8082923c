import { join } from "node:path";
import { z } from "zod";
import { NATIVE_SETUP, runAgentPart } from "../native/agent-part.ts";
import { medianOf, milliseconds, type Report, type Series } from "../report.ts";

/** Of one core, all processes counted. */
const IDLE_LIMIT = { atMost: 2 };

const NOTICE_LIMIT = { atMost: 15_000 };

const Findings = z.object({
  idlePercent: z.array(z.number()),
  noticeMs: z.array(z.number()),
  compareMs: z.array(z.number()),
});

/**
 * What it costs a node to notice that somebody else changes the network namespaces of its clients, and how long it takes.
 */
export async function benchDrift(rounds: number): Promise<Report> {
  const findings = await runAgentPart(join(import.meta.dirname, "agent-part.ts"), rounds);
  const { idlePercent, compareMs, noticeMs } = Findings.parse(findings);
  const idle: Series = { name: "CPU while nothing changes, of one core", unit: "%", samples: idlePercent };
  const notice = milliseconds("from a deleted rule to the end of the look at its client", noticeMs);
  return {
    bench: "drift",
    setup: NATIVE_SETUP,
    series: [idle, notice, milliseconds("CPU of one look at a client", compareMs)],
    targets: [medianOf(idle, IDLE_LIMIT), medianOf(notice, NOTICE_LIMIT)],
  };
}
