import { z } from "zod";

/** What is wrong with the environment a program was started with. A restart does not help: `retryable` is false. */
export class ConfigurationError extends Error {
  readonly code = "invalid-configuration";
  readonly retryable = false;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ConfigurationError";
  }
}

/** What the downward API tells a program of the pod that it runs in. */
export const OwnPod = z.object({
  POD_NAMESPACE: z
    .string()
    .describe("namespace of the program's own pod, by the downward API: metadata.namespace"),
  POD_NAME: z.string().describe("name of the program's own pod, by the downward API: metadata.name"),
});

/**
 * Parses environment variables by a schema whose keys are their names.
 *
 * A variable that is set to nothing counts as absent, as it does for a person who clears a chart value.
 *
 * @param schema one key per variable; use `.describe()` to say what belongs there, it is shown as the remedy
 * @throws ConfigurationError that names each variable that is missing or malformed
 */
export function parseEnvironment<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): z.output<z.ZodObject<Shape>> {
  const present = Object.keys(schema.shape).flatMap((name) => (env[name] ? [[name, env[name]]] : []));
  const result = schema.safeParse(Object.fromEntries(present));
  if (result.success) return result.data;

  const complaints = result.error.issues.map((issue) => {
    const name = String(issue.path[0] ?? "");
    const value = env[name];
    const wrong = value ? `${JSON.stringify(value)}: ${issue.message}` : "is not set";
    const field: unknown = schema.shape[name];
    const description = field instanceof z.ZodType && field.description;
    return `  ${name} ${wrong}${description ? ` (${description})` : ""}`;
  });
  throw new ConfigurationError(
    `cannot start with this environment; set these variables and start again:\n${complaints.join("\n")}`,
    { cause: result.error },
  );
}
