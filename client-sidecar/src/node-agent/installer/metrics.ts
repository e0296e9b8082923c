import { Counter, Gauge, type Registry } from "prom-client";

export class InstallerMetrics {
  readonly rewrites: Counter;
  readonly inPlace: Gauge;

  constructor(registry: Registry) {
    const registers = [registry];
    this.inPlace = new Gauge({
      name: "egress_nat_agent_cni_plugin_in_place",
      help: "1: the CNI plugin is in the configuration that the container runtime uses, and is left there.",
      registers,
    });
    this.rewrites = new Counter({
      name: "egress_nat_agent_cni_rewrites_total",
      help: "Times that another program had removed the CNI plugin from the node's configuration.",
      registers,
    });
  }
}
