/**
 * JSON schemas as CustomResourceDefinitions take them: "structural", without $ref, with Kubernetes' extensions.
 * https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
 */

import { z } from "zod";

/** A JSON schema as plain data. */
export interface Schema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema;
  readonly required?: readonly string[];
  readonly [keyword: string]: unknown;
}

const INT32 = { min: -(2 ** 31), max: 2 ** 31 - 1 } as const;

/** The schema of what a user may write, made from the zod schema of what a program reads. */
export function structuralSchema(schema: z.ZodType): Schema {
  return z.toJSONSchema(schema, {
    io: "input",
    target: "openapi-3.0",
    override: ({ zodSchema, jsonSchema }) => {
      const { def } = zodSchema._zod;
      if (def.type === "union") intOrString(jsonSchema);
      if (jsonSchema.type === "integer") integer(jsonSchema);
      if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
      if (def.type === "object" && "catchall" in def) delete jsonSchema.additionalProperties;
    },
  }) as Schema;
}

/** The only union of the API. A structural schema must not name a type here. */
function intOrString(schema: z.core.JSONSchema.BaseSchema): void {
  schema.anyOf = [{ type: "integer" }, { type: "string" }];
  schema["x-kubernetes-int-or-string"] = true;
}

/** Says the width, and leaves out bounds that only repeat it. zod visits a described schema more than once. */
function integer(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.format !== undefined) return;
  const { minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = schema;
  schema.format = minimum >= INT32.min && maximum <= INT32.max ? "int32" : "int64";
  if (minimum === INT32.min || minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (maximum === INT32.max || maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}
