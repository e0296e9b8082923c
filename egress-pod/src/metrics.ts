import { readFileSync } from "node:fs";
import { observeGauge } from "@egress-nat/program";
import { Counter, Histogram, type Registry } from "prom-client";

/** By link; the second of each family has automatic source ports. */
const TUNNEL_FAMILIES: Readonly<Record<string, string>> = {
  fou4: "ipv4",
  fou4a: "ipv4",
  fou6: "ipv6",
  fou6a: "ipv6",
};

/** What is asked at each scrape. */
export interface Observed {
  /** How many the kernel serves. */
  readonly clients: () => number;
  /** How many it serves the clients of. */
  readonly slices: () => number;
  /** How many flows a gateway that drains still has; 0 while it does not. */
  readonly drainingFlows: () => number;
  /** Packets that were dropped, by the reason. */
  readonly drops: () => Promise<ReadonlyMap<string, number>>;
}

export class Metrics {
  readonly #registry: Registry;
  readonly #applySeconds: Histogram<"outcome">;
  readonly #invalidObjects: Counter<"kind">;
  readonly #driftRepairs: Counter<"object">;

  constructor(registry: Registry) {
    this.#registry = registry;
    const registers = [registry];
    this.#applySeconds = new Histogram({
      name: "egress_nat_gateway_apply_duration_seconds",
      help: "Time from the notice of a change to the committed rule set.",
      labelNames: ["outcome"],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    });
    this.#invalidObjects = new Counter({
      name: "egress_nat_gateway_invalid_objects_total",
      help: "Versions of objects from the API that could not be understood and were ignored.",
      labelNames: ["kind"],
      registers,
    });
    this.#driftRepairs = new Counter({
      name: "egress_nat_gateway_drift_repairs_total",
      help: "Objects of the data path that another program had changed and that were repaired, by kind.",
      labelNames: ["object"],
      registers,
    });
  }

  watch({ clients, slices, drainingFlows, drops }: Observed): void {
    observeGauge(this.#registry, {
      name: "egress_nat_gateway_clients",
      help: "Clients that this gateway serves.",
      read: clients,
    });
    observeGauge(this.#registry, {
      name: "egress_nat_gateway_slices",
      help: "EgressClientSlices whose clients this gateway serves.",
      read: slices,
    });
    observeGauge(this.#registry, {
      name: "egress_nat_gateway_draining_flows",
      help: "Flows that are not over of a gateway that is being terminated; 0 while it is not.",
      read: drainingFlows,
    });
    observeKernel(this.#registry, drops);
  }

  applied(outcome: "success" | "error", durationMs: number): void {
    this.#applySeconds.observe({ outcome }, durationMs / 1000);
  }

  repaired(objects: readonly string[]): void {
    for (const object of objects) this.#driftRepairs.inc({ object });
  }

  invalidObject(kind: string): void {
    this.#invalidObjects.inc({ kind });
  }
}

/** What the kernel counts by itself, read at each scrape. */
function observeKernel(registry: Registry, drops: Observed["drops"]): void {
  observeGauge(registry, {
    name: "egress_nat_gateway_conntrack_entries",
    help: "Flows that the kernel tracks in the network namespace of this gateway.",
    read: () => conntrack("nf_conntrack_count"),
  });
  observeGauge(registry, {
    name: "egress_nat_gateway_conntrack_limit",
    help: "Flows that the kernel can track; the limit is the node's, shared by all its pods.",
    read: () => conntrack("nf_conntrack_max"),
  });
  for (const unit of ["packets", "bytes"] as const) {
    new Counter({
      name: `egress_nat_gateway_tunnel_${unit}_total`,
      help: `${unit === "packets" ? "Packets" : "Bytes"} that clients sent and got through the tunnel since this gateway's links were made.`,
      labelNames: ["family", "direction"],
      registers: [registry],
      collect() {
        this.reset();
        for (const { labels, ...traffic } of tunnelTraffic(readProc("/proc/net/dev"))) {
          this.inc(labels, traffic[unit]);
        }
      },
    });
  }
  new Counter({
    name: "egress_nat_gateway_dropped_packets_total",
    help: "Packets that this gateway dropped since its packet filter was made, by the reason.",
    labelNames: ["reason"],
    registers: [registry],
    async collect() {
      const counted = await drops();
      this.reset();
      for (const [reason, packets] of counted) this.inc({ reason }, packets);
    },
  });
}

/**
 * @param dev the text of /proc/net/dev (proc_pid_net(5)): after each name eight columns of what was received, then
 *   eight of what was sent; of each bytes are the first and packets the second
 */
export function tunnelTraffic(dev: string) {
  return dev.split("\n").flatMap((line) => {
    const [name = "", ...columns] = line.trim().split(/[:\s]+/);
    const family = TUNNEL_FAMILIES[name];
    if (family === undefined) return [];
    return ["from_clients", "to_clients"].map((direction, index) => {
      const [bytes, packets] = columns.slice(8 * index);
      return { labels: { family, direction }, bytes: Number(bytes), packets: Number(packets) };
    });
  });
}

/** NaN, which Prometheus knows, where the kernel tracks nothing (yet). */
function conntrack(sysctl: string): number {
  return Number.parseInt(readProc(`/proc/sys/net/netfilter/${sysctl}`), 10);
}

function readProc(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
