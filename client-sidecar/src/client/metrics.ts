import { EGRESS_RESOURCE } from "@egress-nat/crds";
import type { Refusals } from "@egress-nat/founat";
import { observeGauge } from "@egress-nat/program";
import { Counter, Histogram, type Registry } from "prom-client";

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/** Read when somebody asks for metrics. */
interface ClientCounts {
  readonly clients: () => number;
  readonly tombstones: () => number;
  readonly invalidEgresses: () => number;
  readonly driftWatchUp: () => number;
}

export type ClientMetrics = ReturnType<typeof clientMetrics>;

export function clientMetrics(registry: Registry, counts: ClientCounts) {
  const registers = [registry];
  const refusedPackets = new Counter({
    name: "egress_nat_agent_refused_packets_total",
    help: "Packets that the guards of this node's clients refused while this agent ran, by reason: rejected (of the client, around the tunnel or without a gateway), unheard (to the client, where nobody listens).",
    labelNames: ["reason"],
    registers,
  });
  // The first packet is an increase, too, to who asks for the rate.
  const reasons: Readonly<Record<keyof Refusals, 0>> = { rejected: 0, unheard: 0 };
  for (const [reason, none] of Object.entries(reasons)) refusedPackets.inc({ reason }, none);
  observe(registry, counts);
  return {
    refusedPackets,
    addSeconds: new Histogram({
      name: "egress_nat_agent_add_duration_seconds",
      help: "Time from a client's CNI ADD to its end, successful or not.",
      buckets: SECONDS,
      registers,
    }),
    acknowledgeSeconds: new Histogram({
      name: "egress_nat_agent_acknowledge_duration_seconds",
      help: "Time from the written slice until all gateways that answer had applied it.",
      buckets: SECONDS,
      registers,
    }),
    errors: new Counter({
      name: "egress_nat_agent_errors_total",
      help: "Requests of the CNI plugin that failed, by operation and CNI error code.",
      labelNames: ["operation", "code"],
      registers,
    }),
    reapplied: new Counter({
      name: "egress_nat_agent_reapplied_total",
      help: "Times that a running client was brought up to date, by result (changed, unchanged, error).",
      labelNames: ["result"],
      registers,
    }),
    tunnelProbes: new Counter({
      name: "egress_nat_agent_tunnel_probes_total",
      help: "Clients whose tunnels were probed when they were added, by result (answered, silent, error).",
      labelNames: ["result"],
      registers,
    }),
    driftRepairs: new Counter({
      name: "egress_nat_agent_drift_repairs_total",
      help: "Objects in clients' network namespaces that another program had changed and that were repaired, by kind.",
      labelNames: ["object"],
      registers,
    }),
  };
}

function observe(registry: Registry, counts: ClientCounts): void {
  observeGauge(registry, {
    name: "egress_nat_agent_drift_watch_up",
    help: "1: changes in clients' network namespaces are noticed.",
    read: counts.driftWatchUp,
  });
  observeGauge(registry, {
    name: "egress_nat_agent_clients",
    help: "Clients on this node.",
    read: counts.clients,
  });
  observeGauge(registry, {
    name: "egress_nat_agent_tombstones",
    help: "Addresses of former clients that gateways may still trust.",
    read: counts.tombstones,
  });
  observeGauge(registry, {
    name: "egress_nat_agent_invalid_objects",
    help: "Stored objects that this release does not understand: clients of such an Egress go on with what was last known of it.",
    labelNames: ["kind"],
    read: () => [[{ kind: EGRESS_RESOURCE.kind }, counts.invalidEgresses()]],
  });
}
