import { z } from "zod";

/** One flow, as load/flows.go reports it. */
const Flow = z.object({
  protocol: z.enum(["tcp", "udp"]),
  target: z.string(),
  isIdle: z.boolean(),
  /** The address that the server saw first; empty of a UDP flow that was never answered. */
  gateway: z.string(),
  end: z.enum(["survived", "reset", "broken"]),
  /** Absent of one that survived. */
  endedAtMs: z.number().optional(),
  error: z.string().optional(),
  longestGapMs: z.number(),
  /** When it began. */
  longestGapAtMs: z.number(),
});
export type Flow = z.infer<typeof Flow>;

/** New connections to one target, as load/connections.go reports them. */
const Connections = z.object({
  target: z.string(),
  /** When each good one began. */
  successesMs: z.array(z.number()),
  /** In the order in which they failed. */
  failures: z.array(
    z.object({
      atMs: z.number(),
      /** When the handshake was done; absent if it never was. */
      connectedAtMs: z.number().optional(),
      failedAtMs: z.number(),
      error: z.string(),
    }),
  ),
});
export type Connections = z.infer<typeof Connections>;

/** What load/main.go prints when it is told to stop. Times are milliseconds since it began. */
export const LoadReport = z.object({
  markedAtMs: z.number(),
  endedAtMs: z.number(),
  longestStallMs: z.number(),
  flows: z.array(Flow),
  connections: z.array(Connections),
});
export type LoadReport = z.infer<typeof LoadReport>;

/** The arguments of its role `load`. */
export interface LoadOptions {
  readonly targets: readonly string[];
  /** TCP flows to each target: those that ask all the time, and those that ask every 90 s. */
  readonly busy: number;
  readonly idle: number;
  /** New TCP connections to each target per second. */
  readonly rate: number;
}

export function loadArguments({ targets, busy, idle, rate }: LoadOptions): string[] {
  return ["load", `-targets=${targets.join(",")}`, `-busy=${busy}`, `-idle=${idle}`, `-rate=${rate}`];
}
