import { z } from "zod";
import { ResourceClient } from "../apply/resource-client.ts";
import { CONFIG_MAP_RESOURCE } from "../objects/resource.ts";
import type { Transport } from "../transport/transport.ts";

/** A ConfigMap without its managed fields and all that the tests do not look at. */
export const ConfigMap = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
  }),
  data: z.record(z.string(), z.string()).default({}),
});
export type ConfigMap = z.infer<typeof ConfigMap>;

export function configMaps(transport: Transport): ResourceClient<ConfigMap> {
  return new ResourceClient(transport, CONFIG_MAP_RESOURCE, (raw) => ConfigMap.parse(raw));
}
