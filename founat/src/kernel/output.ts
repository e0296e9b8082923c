import type { z } from "zod";
import { FounatError } from "../error.ts";

/**
 * What a command has printed, as this version understands it.
 *
 * @throws FounatError `unexpected-output`
 */
export function understood<T>(schema: z.ZodType<T>, command: string, printed: unknown): T {
  const { data, error, success } = schema.safeParse(printed);
  if (success) return data;
  throw new FounatError("unexpected-output", `\`${command}\` printed what founat does not understand`, {
    cause: error,
  });
}
