import { z } from "zod";
import { Annotations, Labels } from "./label-selector.ts";
import { CLIENT_ANNOTATION_PREFIX, GATEWAY_ANNOTATION } from "./names.ts";
import { withRules } from "./rule.ts";

/**
 * `spec.template`: a pod template of which every field may be left out.
 *
 * Programs pass it on as it is. The CRD holds Kubernetes' own schema in the place of `spec`
 * (generate/pod-template.schema.yaml), so that the API server checks every field.
 */
export const PodTemplate = withRules(
  z.object({
    metadata: z
      .object({
        labels: Labels.describe("Labels of the gateway pods, beside the operator's own.").exactOptional(),
        annotations: Annotations.describe(
          "Annotations of the gateway pods, beside the operator's own.",
        ).exactOptional(),
      })
      .describe("Labels and annotations of the gateway pods.")
      .exactOptional(),
    spec: z.looseObject({ hostNetwork: z.boolean().exactOptional() }).exactOptional(),
  }),
  {
    cel:
      "!has(self.metadata) || !has(self.metadata.annotations) || " +
      `!self.metadata.annotations.exists(key, key.startsWith('${CLIENT_ANNOTATION_PREFIX}'))`,
    holds: ({ metadata }) =>
      !Object.keys(metadata?.annotations ?? {}).some((key) => key.startsWith(CLIENT_ANNOTATION_PREFIX)),
    message: `a gateway cannot be a client: remove the annotations ${CLIENT_ANNOTATION_PREFIX}... from metadata.annotations`,
  },
  {
    cel: `self.?metadata.?annotations[?'${GATEWAY_ANNOTATION}'].orValue('true') == 'true'`,
    holds: ({ metadata }) => (metadata?.annotations?.[GATEWAY_ANNOTATION] ?? "true") === "true",
    message: `the operator itself sets the annotation ${GATEWAY_ANNOTATION} to "true": remove it from metadata.annotations`,
  },
  {
    cel: "!self.?spec.?hostNetwork.orValue(false)",
    holds: ({ spec }) => spec?.hostNetwork !== true,
    message: "a gateway needs a network namespace of its own: remove spec.hostNetwork",
  },
);
export type PodTemplate = z.infer<typeof PodTemplate>;
