import { z } from "zod";

/** Whose an object is, as far as anybody here asks: https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/ */
export const OwnerReferences = z.array(
  z.object({
    apiVersion: z.string(),
    kind: z.string(),
    name: z.string(),
    uid: z.string(),
    controller: z.boolean().optional(),
  }),
);
