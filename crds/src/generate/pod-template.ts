/** The schema of a pod template for a CustomResourceDefinition, made from the API server's own OpenAPI document. */

import type { Schema } from "./structural.ts";

/** What `kubectl get --raw /openapi/v3/apis/apps/v1` returns, as far as it matters here. */
export interface OpenApiDocument {
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const POD_SPEC = "io.k8s.api.core.v1.PodSpec";
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/** Not for pod templates (ephemeral containers), or not generally available. */
const LEFT_OUT = new Set(["ephemeralContainers", "workloadRef"]);

/**
 * Below this depth descriptions are left out: with all of them the CRD outgrows the annotation of client-side
 * `kubectl apply`, 256 KiB.
 */
const DESCRIBED_DEPTH = 3;

/**
 * @param document the OpenAPI v3 document of apps/v1
 * @returns a structural schema of a template's `spec`, in which nothing on the way to a container is required
 */
export function podTemplateSchema(document: OpenApiDocument): Schema {
  const { required: _containers, ...podSpec } = resolve({ $ref: `#/components/schemas/${POD_SPEC}` }, 0);
  const spec = { ...podSpec, description: "Pod spec of the gateway pods; every field is optional." };
  return { type: "object", properties: { spec } };

  function resolve(schema: Schema, depth: number): Schema {
    const { $ref, allOf } = schema as { $ref?: string; allOf?: readonly Schema[] };
    const reference = $ref ?? (allOf?.[0] as { $ref?: string } | undefined)?.$ref;
    if (reference === undefined) return structural(schema, depth);
    const name = reference.slice("#/components/schemas/".length);
    const target = document.components.schemas[name];
    if (target === undefined)
      throw new Error(`the OpenAPI document has no schema ${name}: fetch that of apps/v1`);
    const described = { ...describe(schema, depth) };
    if (name === QUANTITY) return { ...described, ...INT_OR_STRING, pattern: QUANTITY_PATTERN };
    return { ...structural(target, depth), ...described };
  }

  function structural(schema: Schema, depth: number): Schema {
    if (schema.format === "int-or-string") return { ...describe(schema, depth), ...INT_OR_STRING };
    const keys = (schema["x-kubernetes-list-map-keys"] ?? []) as readonly string[];
    return {
      ...(schema.type === undefined ? {} : { type: schema.type }),
      ...describe(schema, depth),
      ...keep(schema, [
        "format",
        "enum",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
      ]),
      ...(schema.required === undefined ? {} : { required: schema.required }),
      ...(schema.properties === undefined ? {} : { properties: properties(schema.properties, depth + 1) }),
      ...(schema.additionalProperties === undefined
        ? {}
        : { additionalProperties: resolve(schema.additionalProperties, depth + 1) }),
      ...(schema.items === undefined ? {} : { items: item(schema.items, keys, depth) }),
    };
  }

  function properties(all: Readonly<Record<string, Schema>>, depth: number): Record<string, Schema> {
    return Object.fromEntries(
      Object.entries(all)
        .filter(([name]) => !LEFT_OUT.has(name))
        .map(([name, property]) => [name, resolve(property, depth)]),
    );
  }

  /** A key of a list map is required or has a default; all other defaults are left to the Deployment. */
  function item(schema: Schema, keys: readonly string[], depth: number): Schema {
    const resolved = resolve({ ...schema, description: "" }, depth);
    const optional = keys.filter((key) => !resolved.required?.includes(key));
    if (optional.length === 0) return resolved;
    const withDefaults = optional.map((key) => {
      const name =
        (schema as { allOf?: readonly { $ref: string }[] }).allOf?.[0]?.$ref.split("/").at(-1) ?? "";
      const value = document.components.schemas[name]?.properties?.[key]?.default;
      return [key, { ...resolved.properties?.[key], default: value }] as const;
    });
    return { ...resolved, properties: { ...resolved.properties, ...Object.fromEntries(withDefaults) } };
  }
}

const INT_OR_STRING = {
  anyOf: [{ type: "integer" }, { type: "string" }],
  "x-kubernetes-int-or-string": true,
} as const;

/** As in every CRD of kubebuilder: https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity */
const QUANTITY_PATTERN =
  "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$";

/** The first sentence, above a depth. */
function describe({ description }: Schema, depth: number): { description?: string } {
  if (!description || depth > DESCRIBED_DEPTH) return {};
  return { description: description.split(/(?<=\.)\s+(?=[A-Z])|\n/)[0] ?? description };
}

function keep(schema: Schema, keywords: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    keywords.filter((keyword) => schema[keyword] !== undefined).map((keyword) => [keyword, schema[keyword]]),
  );
}
