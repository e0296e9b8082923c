/// <reference path="./prom-client-metrics.d.ts" />
import { Gauge, Registry } from "prom-client";
import gc from "prom-client/lib/metrics/gc.js";
import heapSizeAndUsed from "prom-client/lib/metrics/heapSizeAndUsed.js";
import heapSpacesSizeAndUsed from "prom-client/lib/metrics/heapSpacesSizeAndUsed.js";
import osMemoryHeap from "prom-client/lib/metrics/osMemoryHeap.js";
import processCpuTotal from "prom-client/lib/metrics/processCpuTotal.js";
import processHandles from "prom-client/lib/metrics/processHandles.js";
import processMaxFileDescriptors from "prom-client/lib/metrics/processMaxFileDescriptors.js";
import processOpenFileDescriptors from "prom-client/lib/metrics/processOpenFileDescriptors.js";
import processRequests from "prom-client/lib/metrics/processRequests.js";
import processResources from "prom-client/lib/metrics/processResources.js";
import processStartTime from "prom-client/lib/metrics/processStartTime.js";
import version from "prom-client/lib/metrics/version.js";
import { VERSION } from "./version.ts";

/** prom-client's default metrics but for the event loop's delay, which wakes the process a hundred times a second. */
const PROCESS_METRICS = [
  ...[processCpuTotal, processStartTime, osMemoryHeap],
  ...[processOpenFileDescriptors, processMaxFileDescriptors],
  ...[processResources, processHandles, processRequests],
  ...[heapSizeAndUsed, heapSpacesSizeAndUsed, gc, version],
];

/** A metrics registry that already holds the process's own metrics (CPU, memory, garbage collection) and its version. */
export function createRegistry(): Registry {
  const registry = new Registry();
  for (const collect of PROCESS_METRICS) collect(registry);
  // An info metric: https://prometheus.io/docs/practices/naming/
  new Gauge({
    name: "egress_nat_build_info",
    help: "1, with the version of the program.",
    labelNames: ["version"],
    registers: [registry],
  }).set({ version: VERSION }, 1);
  return registry;
}
