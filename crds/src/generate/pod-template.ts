/** The schema of a pod template for a CustomResourceDefinition, made from the API server's own OpenAPI document. */

import type { Schema } from "./structural.ts";

type Schemas = Readonly<Record<string, Schema>>;

/** What `kubectl get --raw /openapi/v3/apis/apps/v1` returns, as far as it matters here. */
export interface OpenApiDocument {
  readonly components: { readonly schemas: Schemas };
}

const PATH = "#/components/schemas/";
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
export function podTemplateSchema({ components: { schemas } }: OpenApiDocument): Schema {
  const { required: _containers, ...podSpec } = resolve(schemas, { $ref: `${PATH}${POD_SPEC}` }, 0);
  const spec = { ...podSpec, description: "Pod spec of the gateway pods; every field is optional." };
  return { type: "object", properties: { spec } };
}

function resolve(schemas: Schemas, schema: Schema, depth: number): Schema {
  const name = referenced(schema);
  if (name === undefined) return structural(schemas, schema, depth);
  const target = schemas[name];
  if (target === undefined)
    throw new Error(`the OpenAPI document has no schema ${name}: fetch that of apps/v1`);
  const described = describe(schema, depth);
  if (name === QUANTITY) return { ...described, ...INT_OR_STRING, pattern: QUANTITY_PATTERN };
  return { ...structural(schemas, target, depth), ...described };
}

/** The name of the schema that one refers to, by itself or as Kubernetes does where it adds a description. */
function referenced({ $ref, allOf }: Schema): string | undefined {
  const reference = $ref ?? (allOf as readonly Schema[] | undefined)?.[0]?.$ref;
  return (reference as string | undefined)?.slice(PATH.length);
}

function structural(schemas: Schemas, schema: Schema, depth: number): Schema {
  if (schema.format === "int-or-string") return { ...describe(schema, depth), ...INT_OR_STRING };
  const { type, required, properties, additionalProperties, items } = schema;
  return defined({
    type,
    ...describe(schema, depth),
    format: schema.format,
    enum: schema.enum,
    "x-kubernetes-list-map-keys": schema["x-kubernetes-list-map-keys"],
    "x-kubernetes-list-type": schema["x-kubernetes-list-type"],
    "x-kubernetes-map-type": schema["x-kubernetes-map-type"],
    required,
    properties: properties && resolveAll(schemas, properties, depth + 1),
    additionalProperties: additionalProperties && resolve(schemas, additionalProperties, depth + 1),
    items:
      items && item(schemas, items, (schema["x-kubernetes-list-map-keys"] ?? []) as readonly string[], depth),
  });
}

function resolveAll(
  schemas: Schemas,
  properties: Readonly<Record<string, Schema>>,
  depth: number,
): Record<string, Schema> {
  return Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => !LEFT_OUT.has(name))
      .map(([name, property]) => [name, resolve(schemas, property, depth)]),
  );
}

/** A key of a list map is required or has a default; all other defaults are left to the Deployment. */
function item(schemas: Schemas, schema: Schema, keys: readonly string[], depth: number): Schema {
  const resolved = resolve(schemas, { ...schema, description: "" }, depth);
  const optional = keys.filter((key) => !resolved.required?.includes(key));
  if (optional.length === 0) return resolved;
  const source = schemas[referenced(schema) ?? ""];
  const withDefaults = optional.map((key) => {
    const value = source?.properties?.[key]?.default;
    return [key, { ...resolved.properties?.[key], default: value }] as const;
  });
  return { ...resolved, properties: { ...resolved.properties, ...Object.fromEntries(withDefaults) } };
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

function defined(schema: Readonly<Record<string, unknown>>): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== undefined));
}
