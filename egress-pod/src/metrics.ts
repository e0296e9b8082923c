import { readFileSync } from "node:fs";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";

const CONNTRACK = { entries: "nf_conntrack_count", limit: "nf_conntrack_max" } as const;

/** By link; the second of each family has automatic source ports. */
const TUNNEL_FAMILIES: Readonly<Record<string, string>> = {
  fou4: "ipv4",
  fou4a: "ipv4",
  fou6: "ipv6",
  fou6a: "ipv6",
};

/** The metrics of one gateway. */
export class Metrics {
  readonly #clients: Gauge;
  readonly #slices: Gauge;
  readonly #applySeconds: Histogram<"outcome">;
  readonly #invalidObjects: Counter<"kind">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#clients = new Gauge({
      name: "egress_nat_gateway_clients",
      help: "Clients that this gateway serves.",
      registers,
    });
    this.#slices = new Gauge({
      name: "egress_nat_gateway_slices",
      help: "EgressClientSlices whose clients this gateway serves.",
      registers,
    });
    new Gauge({
      name: "egress_nat_gateway_conntrack_entries",
      help: "Flows that the kernel tracks in the network namespace of this gateway.",
      registers,
      collect() {
        this.set(conntrack("entries"));
      },
    });
    new Gauge({
      name: "egress_nat_gateway_conntrack_limit",
      help: "Flows that the kernel can track; the limit is the node's, shared by all its pods.",
      registers,
      collect() {
        this.set(conntrack("limit"));
      },
    });
    new Gauge({
      name: "egress_nat_gateway_tunnel_packets",
      help: "Packets that clients sent and got through the tunnel since this gateway's links were made.",
      labelNames: ["family", "direction"],
      registers,
      collect() {
        for (const { labels, packets } of tunnelPackets(readProc("/proc/net/dev"))) this.set(labels, packets);
      },
    });
    this.#applySeconds = new Histogram({
      name: "egress_nat_gateway_apply_duration_seconds",
      help: "Time from the knowledge of a change to the committed rule set.",
      labelNames: ["outcome"],
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    });
    this.#invalidObjects = new Counter({
      name: "egress_nat_gateway_invalid_objects_total",
      help: "Versions of objects from the API that could not be understood and were left out of account.",
      labelNames: ["kind"],
      registers,
    });
  }

  /** What the kernel holds now. */
  serves(clients: number, slices: number): void {
    this.#clients.set(clients);
    this.#slices.set(slices);
  }

  applied(outcome: "success" | "error", durationMs: number): void {
    this.#applySeconds.observe({ outcome }, durationMs / 1000);
  }

  invalidObject(kind: string): void {
    this.#invalidObjects.inc({ kind });
  }
}

export interface TunnelPackets {
  readonly labels: { readonly family: string; readonly direction: "from_clients" | "to_clients" };
  readonly packets: number;
}

/**
 * @param dev the text of /proc/net/dev (proc_pid_net(5)): after each name eight columns of what was received, then
 *   eight of what was sent; packets are the second of each
 */
export function tunnelPackets(dev: string): TunnelPackets[] {
  return dev.split("\n").flatMap((line): TunnelPackets[] => {
    const [name = "", ...columns] = line.trim().split(/[:\s]+/);
    const family = TUNNEL_FAMILIES[name];
    if (family === undefined) return [];
    return [
      { labels: { family, direction: "from_clients" }, packets: Number(columns[1]) },
      { labels: { family, direction: "to_clients" }, packets: Number(columns[9]) },
    ];
  });
}

/** NaN, which Prometheus knows, where the kernel tracks nothing (yet). */
function conntrack(what: keyof typeof CONNTRACK): number {
  return Number.parseInt(readProc(`/proc/sys/net/netfilter/${CONNTRACK[what]}`), 10);
}

function readProc(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
