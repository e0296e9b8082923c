/** The CRDs of egress-nat. */

import { Egress } from "../egress.ts";
import { EgressClientSlice } from "../egress-client-slice.ts";
import { EGRESS_RESOURCE, SLICE_RESOURCE } from "../resource.ts";
import { type CustomResourceDefinition, customResourceDefinition, type PrinterColumn } from "./crd.ts";
import type { Schema } from "./structural.ts";

const AGE = column("Age", "date", ".metadata.creationTimestamp", "Time since it was created.");

/**
 * @param podTemplate the schema whose fields stand for those of spec.template
 * @returns file names and the definitions in them
 */
export function definitions(podTemplate: Schema): Readonly<Record<string, CustomResourceDefinition>> {
  return {
    "egresses.yaml": withPodTemplate(egresses, podTemplate),
    "egressclientslices.yaml": slices,
  };
}

const egresses = customResourceDefinition(EGRESS_RESOURCE, Egress, {
  shortNames: ["eg"],
  subresources: {
    status: {},
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.selector",
    },
  },
  printerColumns: [
    column("Destinations", "string", ".spec.destinations", "Networks that clients reach through it."),
    column(
      "Ready",
      "string",
      conditionPath("Ready", "status"),
      "Whether a gateway serves and nothing blocks the wanted state.",
    ),
    column(
      "Degraded",
      "string",
      conditionPath("Degraded", "reason"),
      "What needs attention. AsExpected means that nothing does.",
    ),
    column("Gateways", "integer", ".status.readyReplicas", "Gateways that are ready."),
    column("Replicas", "integer", ".spec.replicas", "Gateways that are wanted."),
    column("Clients", "integer", ".status.clients", "Pods that are clients."),
    AGE,
    column("Service IPs", "string", ".status.serviceIPs", "Addresses of the Service.", 1),
    column("States", "string", ".status.gatewayStates", "How many gateways are in which state.", 1),
  ],
});

const slices = customResourceDefinition(SLICE_RESOURCE, EgressClientSlice, {
  shortNames: ["egcs"],
  printerColumns: [
    column("Egress", "string", ".metadata.labels.coil\\.cybozu\\.com/egress", "The Egress of the clients."),
    column("Node", "string", ".nodeName", "The node of the clients."),
    column("Clients", "integer", ".clientCount", "How many pods are clients."),
    column("Pods", "string", ".clients[*].name", "The pods.", 1),
    AGE,
  ],
});

/** @param priority 1: only with `-o wide` */
function column(
  name: string,
  type: PrinterColumn["type"],
  jsonPath: string,
  description: string,
  priority?: 1,
): PrinterColumn {
  return { name, type, jsonPath, description, ...(priority && { priority }) };
}

/** A JSONPath to a field of the condition of that type. */
function conditionPath(type: string, field: "status" | "reason"): string {
  return `.status.conditions[?(@.type=='${type}')].${field}`;
}

function withPodTemplate(
  definition: CustomResourceDefinition,
  podTemplate: Schema,
): CustomResourceDefinition {
  const versions = definition.spec.versions.map((version) => {
    const root = version.schema.openAPIV3Schema;
    const spec = root.properties?.spec ?? {};
    const own = spec.properties?.template ?? {};
    const template = { ...podTemplate, ...own, properties: { ...own.properties, ...podTemplate.properties } };
    const properties = {
      ...root.properties,
      spec: { ...spec, properties: { ...spec.properties, template } },
    };
    return { ...version, schema: { openAPIV3Schema: { ...root, properties } } };
  });
  return { ...definition, spec: { ...definition.spec, versions } };
}
