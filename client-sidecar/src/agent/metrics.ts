import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** What the agent counts; served on /metrics. */
export class AgentMetrics {
  readonly addSeconds: Histogram;
  readonly acknowledgeSeconds: Histogram;
  readonly errors: Counter<"operation" | "code">;
  readonly reapplied: Counter<"result">;
  readonly tunnelProbes: Counter<"result">;

  /**
   * @param counts read when somebody asks for metrics
   */
  constructor(
    registry: Registry,
    counts: { readonly clients: () => number; readonly tombstones: () => number },
  ) {
    const registers = [registry];
    this.addSeconds = new Histogram({
      name: "egress_nat_agent_add_seconds",
      help: "Time from a client's CNI ADD to its end, successful or not.",
      buckets: SECONDS,
      registers,
    });
    this.acknowledgeSeconds = new Histogram({
      name: "egress_nat_agent_acknowledge_seconds",
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
    gauge(registers, "egress_nat_agent_clients", "Clients on this node.", counts.clients);
    gauge(
      registers,
      "egress_nat_agent_tombstones",
      "Addresses of former clients that gateways may still trust.",
      counts.tombstones,
    );
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
