/** What the agent reads back from its own files: parsed, as whatever comes from outside the process. */

import { z } from "zod";
import type { ClientRecord, TrustedAddress } from "./record.ts";

const EgressReference = z.object({ namespace: z.string(), name: z.string() });

export const ClientRecordSchema = z.object({
  // Records of before the field was there have none.
  network: z.string().exactOptional(),
  containerId: z.string(),
  netns: z.string(),
  ifname: z.string(),
  pod: z.object({ namespace: z.string(), name: z.string(), uid: z.string() }),
  addresses: z.array(z.string()),
  addedAt: z.string(),
  egresses: z.array(
    EgressReference.extend({
      destinations: z.array(z.string()),
      // Records of before the field was there have none.
      excludedDestinations: z.array(z.string()).default([]),
      originatingOnly: z.boolean(),
      fouSourcePortAuto: z.boolean(),
    }),
  ),
}) satisfies z.ZodType<ClientRecord>;

export const TrustedAddressSchema = z
  .object({
    address: z.string(),
    record: z.string().exactOptional(),
    // Instead of it in files of an earlier version, whose records were named for their containers alone.
    containerId: z.string().exactOptional(),
    egresses: z.array(EgressReference),
  })
  .transform(({ containerId, record = containerId, ...rest }) =>
    record === undefined ? rest : { ...rest, record },
  ) satisfies z.ZodType<TrustedAddress>;
