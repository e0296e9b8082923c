import { EGRESS_RESOURCE } from "@egress-nat/crds";
import type { Refusals } from "@egress-nat/founat";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** What the agent counts; served on /metrics. */
export class ClientMetrics {
  readonly addSeconds: Histogram;
  readonly acknowledgeSeconds: Histogram;
  readonly errors: Counter<"operation" | "code">;
  readonly reapplied: Counter<"result">;
  readonly tunnelProbes: Counter<"result">;
  readonly driftRepairs: Counter<"object">;
  readonly refusedPackets: Counter<"reason">;

  /**
   * @param counts read when somebody asks for metrics
   */
  constructor(
    registry: Registry,
    counts: {
      readonly clients: () => number;
      readonly tombstones: () => number;
      readonly invalidEgresses: () => number;
      readonly driftWatchUp: () => number;
    },
  ) {
    const registers = [registry];
    this.addSeconds = new Histogram({
      name: "egress_nat_agent_add_duration_seconds",
      help: "Time from a client's CNI ADD to its end, successful or not.",
      buckets: SECONDS,
      registers,
    });
    this.acknowledgeSeconds = new Histogram({
      name: "egress_nat_agent_acknowledge_duration_seconds",
      help: "Time from the written slice until all gateways that answer had applied it.",
      buckets: SECONDS,
      registers,
    });
    this.errors = new Counter({
      name: "egress_nat_agent_errors_total",
      help: "Requests of the CNI plugin that failed, by operation and CNI error code.",
      labelNames: ["operation", "code"],
      registers,
    });
    this.reapplied = new Counter({
      name: "egress_nat_agent_reapplied_total",
      help: "Times that a running client was brought up to date, by result (changed, unchanged, error).",
      labelNames: ["result"],
      registers,
    });
    this.tunnelProbes = new Counter({
      name: "egress_nat_agent_tunnel_probes_total",
      help: "Clients whose tunnels were probed when they were added, by result (answered, silent, error).",
      labelNames: ["result"],
      registers,
    });
    this.driftRepairs = new Counter({
      name: "egress_nat_agent_drift_repairs_total",
      help: "Objects in clients' network namespaces that another program had changed and that were repaired, by kind.",
      labelNames: ["object"],
      registers,
    });
    this.refusedPackets = new Counter({
      name: "egress_nat_agent_refused_packets_total",
      help: "Packets that the guards of this node's clients refused while this agent ran, by reason: rejected (of the client, around the tunnel or without a gateway), unheard (to the client, where nobody listens).",
      labelNames: ["reason"],
      registers,
    });
    // The first packet is an increase, too, to who asks for the rate.
    const reasons: Readonly<Record<keyof Refusals, 0>> = { rejected: 0, unheard: 0 };
    for (const [reason, none] of Object.entries(reasons)) this.refusedPackets.inc({ reason }, none);
    gauge(
      registers,
      "egress_nat_agent_drift_watch_up",
      "1: changes in clients' network namespaces are noticed.",
      counts.driftWatchUp,
    );
    gauge(registers, "egress_nat_agent_clients", "Clients on this node.", counts.clients);
    gauge(
      registers,
      "egress_nat_agent_tombstones",
      "Addresses of former clients that gateways may still trust.",
      counts.tombstones,
    );
    new Gauge({
      name: "egress_nat_agent_invalid_objects",
      help: "Stored objects that this release does not understand: clients of such an Egress go on with what was last known of it.",
      labelNames: ["kind"],
      registers,
      collect() {
        this.set({ kind: EGRESS_RESOURCE.kind }, counts.invalidEgresses());
      },
    });
  }
}

function gauge(registers: Registry[], name: string, help: string, value: () => number): void {
  new Gauge({
    name,
    help,
    registers,
    collect() {
      this.set(value());
    },
  });
}
