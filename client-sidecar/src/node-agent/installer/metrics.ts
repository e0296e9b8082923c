import { Counter, Gauge, type Registry } from "prom-client";

export type InstallerMetrics = ReturnType<typeof installerMetrics>;

export function installerMetrics(registry: Registry) {
  const registers = [registry];
  return {
    inPlace: new Gauge({
      name: "egress_nat_agent_cni_plugin_in_place",
      help: "1: the CNI plugin is in the configuration that the container runtime uses, and is left there.",
      registers,
    }),
    rewrites: new Counter({
      name: "egress_nat_agent_cni_rewrites_total",
      help: "Times that another program had removed the CNI plugin from the node's configuration.",
      registers,
    }),
  };
}
