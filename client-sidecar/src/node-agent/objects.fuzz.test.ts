import { ClusterRanges, EgressClientSlice } from "@egress-nat/crds";
import { EndpointSlice, mergeEndpoints } from "@egress-nat/kube";
import { fuzzBytes } from "@egress-nat/test/fuzz/bytes";
import { expect, test } from "vitest";
import type { z } from "zod";
import { EgressFacts } from "../gateways/view.ts";

const metadata = { name: "nat", namespace: "egress", uid: "1", generation: 3, resourceVersion: "7" };
const addedAt = "2026-01-01T00:00:00Z";

/** What the agent watches, each with an object as the API has it. */
const WATCHED: Record<string, { schema: z.ZodType; object: object }> = {
  Egress: {
    schema: EgressFacts,
    object: {
      metadata,
      spec: { destinations: ["0.0.0.0/0", "2000::/3"], allowedNamespaces: { matchLabels: { team: "a" } } },
      status: { serviceIPs: ["10.96.0.10", "fd00:96::10"], observedGeneration: 3 },
    },
  },
  EgressClientSlice: {
    schema: EgressClientSlice,
    object: {
      metadata,
      nodeName: "n1",
      clients: [{ namespace: "apps", name: "web", uid: "2", addresses: ["10.244.1.2", "fd00::1"], addedAt }],
    },
  },
  EndpointSlice: {
    schema: EndpointSlice.transform((slice) => mergeEndpoints([slice, slice])),
    object: {
      metadata,
      endpoints: [
        { addresses: ["10.244.1.9"], conditions: { ready: true }, targetRef: { name: "nat-0", uid: "3" } },
        { addresses: ["fd00::9"], conditions: { serving: true, terminating: true }, nodeName: "n2" },
      ],
    },
  },
  ConfigMap: { schema: ClusterRanges, object: { metadata, data: { ranges: "10.244.0.0/16\nfd00::/48\n" } } },
};

test.each(Object.entries(WATCHED))(
  "any JSON is an object of kind %s, or refused as none",
  (_, { schema, object }) => {
    expect(schema.safeParse(object).error).toBeUndefined();
    return fuzzBytes([Buffer.from(JSON.stringify(object))], (bytes) => {
      let json: unknown;
      try {
        json = JSON.parse(Buffer.from(bytes).toString());
      } catch {
        return;
      }
      schema.safeParse(json);
    });
  },
);
