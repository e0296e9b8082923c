import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleProgram } from "@egress-nat/tools/build/bundle";
import { needCommands } from "@egress-nat/tools/system/debian-packages";
import { execa } from "execa";
import { z } from "zod";
import { progress } from "../progress.ts";
import { medianOf, milliseconds, type Report, type Series } from "../report.ts";

const CLIENTS = 110;

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
 * On this machine: an emulated one would count what its emulation costs.
 */
export async function benchDrift(rounds: number): Promise<Report> {
  await needCommands(["ip", "nft", "nsenter"]);
  const folder = await mkdtemp(join(tmpdir(), "egress-nat-bench-"));
  try {
    await bundleProgram(join(import.meta.dirname, "agent-part.ts"), folder);
    progress(`${CLIENTS} network namespaces, ${rounds} rounds of a minute`);
    const { stdout } = await execa(process.execPath, [join(folder, "main.js"), `${CLIENTS}`, `${rounds}`]);
    const { idlePercent, compareMs, noticeMs } = Findings.parse(JSON.parse(stdout));
    const idle: Series = { name: "CPU while nothing changes, of one core", unit: "%", samples: idlePercent };
    const notice = milliseconds("from a deleted rule to the end of the look at its client", noticeMs);
    return {
      bench: "drift",
      setup: `${CLIENTS} clients on this machine, both families, links of another kind in place of FoU`,
      series: [idle, notice, milliseconds("CPU of one look at a client", compareMs)],
      targets: [medianOf(idle, IDLE_LIMIT), medianOf(notice, NOTICE_LIMIT)],
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
