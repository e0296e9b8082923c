import { z } from "zod";

/**
 * `spec.template`: a pod template of which every field may be left out.
 *
 * Programs pass it on as it is. The CRD holds Kubernetes' own schema in its place
 * (generate/pod-template.schema.json), so that the API server checks every field.
 */
export const PodTemplate = z.object({
  metadata: z
    .object({
      labels: z.record(z.string(), z.string()).exactOptional(),
      annotations: z.record(z.string(), z.string()).exactOptional(),
    })
    .exactOptional(),
  spec: z.looseObject({}).exactOptional(),
});
export type PodTemplate = z.infer<typeof PodTemplate>;
