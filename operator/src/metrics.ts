import { Condition, EGRESS_RESOURCE, GatewayStatus, isInvalid } from "@egress-nat/crds";
import type { Controller, ReflectorState, SentRequest, WorkReport } from "@egress-nat/kube";
import { observeGauge } from "@egress-nat/program";
import { Counter, Histogram, type Registry } from "prom-client";
import type { RangesBySource } from "./cluster-ranges/ranges.ts";
import type { StoredEgress } from "./egress/status.ts";

/** What the metrics are read from. */
export interface Observed {
  readonly controllers: readonly Pick<Controller, "name" | "depth">[];
  /** Networks and addresses, by what said that they are in the cluster. */
  readonly clusterRanges: () => RangesBySource;
  readonly watches: () => Readonly<Record<string, ReflectorState>>;
  readonly isLeader: () => boolean;
  readonly egresses: () => readonly StoredEgress[];
}

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

  watch({ controllers, clusterRanges, watches, isLeader, egresses }: Observed): void {
    observeGauge(this.#registry, {
      name: "egress_nat_operator_queue_depth",
      help: "Objects that wait to be reconciled.",
      labelNames: ["controller"],
      read: () => controllers.map(({ name, depth }) => [{ controller: name }, depth]),
    });
    observeGauge(this.#registry, {
      name: "egress_nat_operator_cluster_ranges",
      help: "Networks and addresses of the cluster that are known, by where they were found.",
      labelNames: ["source"],
      read: () => Object.entries(clusterRanges()).map(([source, { length }]) => [{ source }, length]),
    });
    observeGauge(this.#registry, {
      name: "egress_nat_operator_watch_up",
      help: "Whether the watch of a resource has a complete list and a connection, or the API server does not serve it.",
      labelNames: ["resource"],
      read: () =>
        Object.entries(watches()).map(([resource, { phase, synced }]) => [
          { resource },
          synced && (phase === "watching" || phase === "unserved") ? 1 : 0,
        ]),
    });
    observeGauge(this.#registry, {
      name: "egress_nat_operator_invalid_objects",
      help: "Stored objects that this release does not understand.",
      labelNames: ["kind"],
      read: () => [[{ kind: EGRESS_RESOURCE.kind }, egresses().filter(isInvalid).length]],
    });
    observeGauge(this.#registry, {
      name: "egress_nat_operator_condition",
      help: "Conditions of Egresses: 1 where the condition has this status, as kube-state-metrics has it.",
      labelNames: ["namespace", "egress", "type", "status"],
      // Of the one that leads: two that tell the same would be counted twice.
      read: () => (isLeader() ? egresses().flatMap(conditionSamples) : []),
    });
    observeGauge(this.#registry, {
      name: "egress_nat_operator_gateways",
      help: "Gateways of Egresses by the state that the status gives them.",
      labelNames: ["namespace", "egress", "state"],
      read: () => (isLeader() ? egresses().flatMap(gatewaySamples) : []),
    });
    observeGauge(this.#registry, {
      name: "egress_nat_operator_leader",
      help: "Whether this operator leads.",
      read: () => (isLeader() ? 1 : 0),
    });
  }
}

/** As kube-state-metrics spells them. */
function conditionSamples({ metadata, status }: StoredEgress) {
  const { namespace, name: egress } = metadata;
  return (status?.conditions ?? []).flatMap(({ type, status: actual }) =>
    Condition.shape.status.options.map((possible) => {
      const labels = { namespace, egress, type, status: possible.toLowerCase() };
      return [labels, possible === actual ? 1 : 0] as const;
    }),
  );
}

function gatewaySamples({ metadata, status }: StoredEgress) {
  const { namespace, name: egress } = metadata;
  const states = (status?.gateways ?? []).map(({ state }) => state);
  return GatewayStatus.shape.state.options.map(
    (state) => [{ namespace, egress, state }, states.filter((each) => each === state).length] as const,
  );
}
