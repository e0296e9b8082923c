/** The CRDs of egress-nat. */

import { Egress } from "../egress.ts";
import { EgressClientSlice } from "../egress-client-slice.ts";
import { EGRESS_RESOURCE, SLICE_RESOURCE } from "../resource.ts";
import { type CustomResourceDefinition, customResourceDefinition, type PrinterColumn } from "./crd.ts";
import type { Schema } from "./structural.ts";

const AGE: PrinterColumn = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since it was created.",
};

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
    {
      name: "Destinations",
      type: "string",
      jsonPath: ".spec.destinations",
      description: "Networks that clients reach through it.",
    },
    {
      name: "Ready",
      type: "string",
      jsonPath: conditionPath("Ready", "status"),
      description: "Whether a gateway serves and nothing blocks the wanted state.",
    },
    {
      name: "Degraded",
      type: "string",
      jsonPath: conditionPath("Degraded", "reason"),
      description: "What needs a person. AsExpected means that nothing does.",
    },
    {
      name: "Gateways",
      type: "integer",
      jsonPath: ".status.readyReplicas",
      description: "Gateways that are ready.",
    },
    {
      name: "Replicas",
      type: "integer",
      jsonPath: ".spec.replicas",
      description: "Gateways that are wanted.",
    },
    {
      name: "Clients",
      type: "integer",
      jsonPath: ".status.clients",
      description: "Pods that are clients.",
    },
    AGE,
    {
      name: "Service IPs",
      type: "string",
      jsonPath: ".status.serviceIPs",
      description: "Addresses that clients send to.",
      priority: 1,
    },
  ],
});

const slices = customResourceDefinition(SLICE_RESOURCE, EgressClientSlice, {
  shortNames: ["egcs"],
  printerColumns: [
    {
      name: "Egress",
      type: "string",
      jsonPath: ".metadata.labels.coil\\.cybozu\\.com/egress",
      description: "The Egress of the clients.",
    },
    { name: "Node", type: "string", jsonPath: ".nodeName", description: "The node of the clients." },
    {
      name: "Clients",
      type: "integer",
      jsonPath: ".clientCount",
      description: "How many pods are clients.",
    },
    {
      name: "Pods",
      type: "string",
      jsonPath: ".clients[*].name",
      description: "The pods.",
      priority: 1,
    },
    AGE,
  ],
});

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
