/** Whether an API server knows all fields that this release reads and writes. */

import type { z } from "zod";
import { type Schema, structuralSchema } from "./generate/structural.ts";

/** The head of an object is the API server's own; a template is passed on as it is. */
const NOT_COMPARED: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "spec.template"]);

/**
 * The fields of a resource that a CustomResourceDefinition does not have, as one of another product or an earlier release.
 *
 * @param schema of the resource, as this release has it
 * @param served what the API server says of it, in /openapi/v3; more fields than ours are no harm
 * @returns paths like `status.gateways`; of a field that is missing not those below it
 */
export function missingFields(schema: z.ZodObject, served: Schema): readonly string[] {
  return missingBelow("", structuralSchema(schema), served);
}

function missingBelow(path: string, ours: Schema, served: Schema): readonly string[] {
  const fields = Object.entries(ours.properties ?? {}).flatMap(([name, field]) => {
    const fieldPath = path === "" ? name : `${path}.${name}`;
    if (NOT_COMPARED.has(fieldPath)) return [];
    const servedField = served.properties?.[name];
    return servedField === undefined ? [fieldPath] : missingBelow(fieldPath, field, servedField);
  });
  if (ours.items === undefined) return fields;
  return [...fields, ...missingBelow(`${path}[]`, ours.items, served.items ?? {})];
}
