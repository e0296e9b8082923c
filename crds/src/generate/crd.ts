/** CustomResourceDefinitions from zod schemas. */

import type { z } from "zod";
import { API_GROUP, API_VERSION } from "../names.ts";
import type { EGRESS_RESOURCE, SLICE_RESOURCE } from "../resource.ts";
import { type Schema, structuralSchema } from "./structural.ts";

/** What a CRD says besides the schema. */
export interface Presentation {
  readonly shortNames: readonly string[];
  readonly printerColumns: readonly PrinterColumn[];
  readonly subresources?: Readonly<Record<string, unknown>>;
}

/** https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#additional-printer-columns */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly jsonPath: string;
  readonly description: string;
  /** 1: only with `-o wide`. */
  readonly priority?: 1;
}

export type CustomResourceDefinition = ReturnType<typeof customResourceDefinition>;

/** @param schema of its objects; the API server itself describes apiVersion, kind and metadata */
export function customResourceDefinition(
  resource: typeof EGRESS_RESOURCE | typeof SLICE_RESOURCE,
  schema: z.ZodObject,
  presentation: Presentation,
) {
  const { plural, kind } = resource;
  const { shortNames, printerColumns, subresources } = presentation;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${API_GROUP}` },
    spec: {
      group: API_GROUP,
      scope: "Namespaced",
      names: {
        plural,
        singular: kind.toLowerCase(),
        kind,
        listKind: `${kind}List`,
        shortNames,
      },
      versions: [
        {
          name: API_VERSION,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: objectSchema(schema) },
          ...(subresources && { subresources }),
          additionalPrinterColumns: printerColumns,
        },
      ],
    },
  };
}

function objectSchema(schema: z.ZodObject): Schema {
  const own = structuralSchema(schema);
  const { apiVersion: _, kind: __, metadata: ___, ...properties } = own.properties ?? {};
  return {
    ...own,
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { type: "object" },
      ...properties,
    },
    required: own.required?.filter((name) => name !== "metadata") ?? [],
  };
}
