import { EGRESS_RESOURCE } from "@egress-nat/crds";
import type { ReflectorState, SentRequest, WorkQueue, WorkReport } from "@egress-nat/kube";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { RangesBySource } from "./cluster-ranges/ranges.ts";
import type { StoredEgress } from "./egress/status.ts";

/** What the metrics are read from. */
export interface Observed {
  readonly queues: Readonly<Record<string, WorkQueue>>;
  /** Networks and addresses, by what said that they are in the cluster. */
  readonly clusterRanges: () => RangesBySource;
  readonly watches: () => Readonly<Record<string, ReflectorState>>;
  readonly isLeader: () => boolean;
  /** How many Egresses are not understood. */
  readonly invalidEgresses: () => number;
  readonly egresses: () => readonly StoredEgress[];
}

/** What a condition may be, as kube-state-metrics spells it. */
const CONDITION_STATUSES = ["True", "False", "Unknown"] as const;

/** The operator's own metrics; those that say how things stand are read when they are asked for. */
export class OperatorMetrics {
  readonly #reconciles: Counter<"controller" | "outcome">;
  readonly #requests: Counter<"method" | "code">;
  readonly #durations: Histogram<"controller">;
  readonly #registry: Registry;

  constructor(registry: Registry) {
    this.#registry = registry;
    this.#reconciles = new Counter({
      name: "egress_nat_operator_reconciles_total",
      help: "Reconciles by outcome: done, requeue or error.",
      labelNames: ["controller", "outcome"],
      registers: [registry],
    });
    this.#requests = new Counter({
      name: "egress_nat_operator_api_requests_total",
      help: "Requests to the API server by its answer.",
      labelNames: ["method", "code"],
      registers: [registry],
    });
    this.#durations = new Histogram({
      name: "egress_nat_operator_reconcile_duration_seconds",
      help: "Time that one reconcile took.",
      labelNames: ["controller"],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2, 10],
      registers: [registry],
    });
  }

  count(controller: string, { outcome, durationMs }: WorkReport): void {
    this.#reconciles.inc({ controller, outcome });
    this.#durations.observe({ controller }, durationMs / 1000);
  }

  /** A request to the API server. */
  requested({ method, status }: SentRequest): void {
    this.#requests.inc({ method, code: status ?? "none" });
  }

  watch({ queues, clusterRanges, watches, isLeader, invalidEgresses, egresses }: Observed): void {
    const registers = [this.#registry];
    new Gauge({
      name: "egress_nat_operator_queue_depth",
      help: "Objects that wait to be reconciled.",
      labelNames: ["controller"],
      registers,
      collect() {
        for (const [controller, queue] of Object.entries(queues)) this.set({ controller }, queue.depth);
      },
    });
    new Gauge({
      name: "egress_nat_operator_cluster_ranges",
      help: "Networks and addresses of the cluster that are known, by where they were found.",
      labelNames: ["source"],
      registers,
      collect() {
        for (const [source, { length }] of Object.entries(clusterRanges())) this.set({ source }, length);
      },
    });
    new Gauge({
      name: "egress_nat_operator_watch_up",
      help: "Whether the watch of a resource has a complete list and a connection.",
      labelNames: ["resource"],
      registers,
      collect() {
        for (const [resource, { phase, synced }] of Object.entries(watches())) {
          this.set({ resource }, synced && phase === "watching" ? 1 : 0);
        }
      },
    });
    new Gauge({
      name: "egress_nat_operator_invalid_objects",
      help: "Stored objects that this release does not understand.",
      labelNames: ["kind"],
      registers,
      collect() {
        this.set({ kind: EGRESS_RESOURCE.kind }, invalidEgresses());
      },
    });
    // Of the one that leads: two that tell the same would be counted twice.
    new Gauge({
      name: "egress_nat_operator_condition",
      help: "Conditions of Egresses: 1 where the condition has this status, as kube-state-metrics has it.",
      labelNames: ["namespace", "egress", "type", "status"],
      registers,
      collect() {
        this.reset();
        if (!isLeader()) return;
        for (const { metadata, status } of egresses()) {
          const { namespace, name: egress } = metadata;
          for (const { type, status: actual } of status?.conditions ?? []) {
            for (const possible of CONDITION_STATUSES) {
              const labels = { namespace, egress, type, status: possible.toLowerCase() };
              this.set(labels, possible === actual ? 1 : 0);
            }
          }
        }
      },
    });
    new Gauge({
      name: "egress_nat_operator_leader",
      help: "Whether this operator leads.",
      registers,
      collect() {
        this.set(isLeader() ? 1 : 0);
      },
    });
  }
}
